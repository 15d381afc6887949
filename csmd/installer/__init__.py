"""What csmd writes outside its own directories: planned, applied, recorded, taken back; values out, nothing is printed."""
