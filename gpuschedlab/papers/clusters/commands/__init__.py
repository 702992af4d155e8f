"""Commands of a site, beside `replay`: a module each."""
