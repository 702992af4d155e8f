"""Work of jobs as their attempts in a log imply it, and what is left of it once size, task and load are held fixed."""
