"""What survives a process: an append-only log in segments, over files that are real or simulated.

``files`` says what is asked of a file system; ``block`` and ``segment_format`` are the bytes; ``walk`` finds the
blocks of a file and what is damaged between them; ``view`` reads a log, ``opening`` finds out what a folder holds,
``log`` writes; ``commits`` shares one sync among everything that has accumulated. Only the files called ``real_`` do
IO.
"""
