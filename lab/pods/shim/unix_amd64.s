//go:build windows

#include "textflag.h"

// func unixCall(number uintptr, first, second *byte) (result int)
TEXT ·unixCall(SB), NOSPLIT, $0-32
	MOVQ number+0(FP), AX
	MOVQ first+8(FP), DI
	MOVQ second+16(FP), SI
	SYSCALL
	MOVQ AX, result+24(FP)
	RET
