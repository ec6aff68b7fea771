"""Looking at what is installed, for the doctor: does each hook lead anywhere? Nothing is written."""
