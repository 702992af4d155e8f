"""AutoSched (thesis, chapter 6): closed loops on real traces, and its parts."""
