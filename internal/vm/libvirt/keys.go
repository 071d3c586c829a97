package libvirt

import (
	"fmt"
	"strings"
)

// codeTable returns the key codes of Linux by QEMU's names of the keys.
func codeTable() map[string]uint32 {
	return map[string]uint32{
		"esc": 1, "1": 2, "2": 3, "3": 4, "4": 5, "5": 6, "6": 7, "7": 8, "8": 9, "9": 10, "0": 11, "minus": 12,
		"equal": 13, "backspace": 14, "tab": 15, "q": 16, "w": 17, "e": 18, "r": 19, "t": 20, "y": 21, "u": 22,
		"i": 23, "o": 24, "p": 25, "bracket_left": 26, "bracket_right": 27, "ret": 28, "ctrl": 29, "a": 30, "s": 31,
		"d": 32, "f": 33, "g": 34, "h": 35, "j": 36, "k": 37, "l": 38, "semicolon": 39, "apostrophe": 40,
		"grave_accent": 41, "shift": 42, "backslash": 43, "z": 44, "x": 45, "c": 46, "v": 47, "b": 48, "n": 49,
		"m": 50, "comma": 51, "dot": 52, "slash": 53, "shift_r": 54, "kp_multiply": 55, "alt": 56, "spc": 57,
		"caps_lock": 58, "f1": 59, "f2": 60, "f3": 61, "f4": 62, "f5": 63, "f6": 64, "f7": 65, "f8": 66, "f9": 67,
		"f10": 68, "num_lock": 69, "scroll_lock": 70, "kp_7": 71, "kp_8": 72, "kp_9": 73, "kp_subtract": 74,
		"kp_4": 75, "kp_5": 76, "kp_6": 77, "kp_add": 78, "kp_1": 79, "kp_2": 80, "kp_3": 81, "kp_0": 82,
		"kp_decimal": 83, "less": 86, "f11": 87, "f12": 88, "kp_enter": 96, "ctrl_r": 97, "kp_divide": 98,
		"print": 99, "alt_r": 100, "home": 102, "up": 103, "pgup": 104, "left": 105, "right": 106, "end": 107,
		"down": 108, "pgdn": 109, "insert": 110, "delete": 111, "pause": 119, "meta_l": 125, "meta_r": 126,
		"menu": 127,
	}
}

// keyCodes returns the codes of a combination such as ctrl-alt-delete.
func keyCodes(combination string) (codes []uint32, err error) {
	table := codeTable()
	for name := range strings.SplitSeq(combination, "-") {
		code, ok := table[name]
		if !ok {
			return nil, fmt.Errorf("%.60q is no combination of keys; join QEMU's names, as in ctrl-alt-delete: "+
				"ret, esc, spc, tab, f1, a, 1, shift, ctrl, alt", combination)
		}
		codes = append(codes, code)
	}
	if len(codes) > maxKeysAtOnce {
		return nil, fmt.Errorf("%.60q has more than %d keys", combination, maxKeysAtOnce)
	}
	return codes, nil
}
