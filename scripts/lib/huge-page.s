# Makes the system load the program at the boundary of a huge page: Linux 6.18 respects the largest alignment of all segments. Not the
# alignment of the code itself, because then that version maps the file by huge pages, and most of it becomes resident.
    .section .bss.huge_page, "awR", @nobits
    .balign 2 << 20
    .skip 1
    .section .note.GNU-stack, "", @progbits
