# Makes the system load the program at the boundary of a huge page (Linux 6.10 or newer): it respects the largest alignment of all
# segments. Not the alignment of the text itself, because then newer systems map the text by huge pages, and most of it becomes resident.
    .section .bss.huge_page, "awR", @nobits
    .balign 2 << 20
    .skip 1
    .section .note.GNU-stack, "", @progbits
