"""Looking at what is installed, for the doctor: does each hook lead anywhere? It writes nothing."""
