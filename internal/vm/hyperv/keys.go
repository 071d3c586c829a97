package hyperv

import (
	"fmt"
	"slices"
	"strings"
)

// codeTable returns the scan codes (set 1) of keys by QEMU's names.
func codeTable() map[string]byte {
	return map[string]byte{
		"esc": 0x01, "1": 0x02, "2": 0x03, "3": 0x04, "4": 0x05, "5": 0x06, "6": 0x07, "7": 0x08, "8": 0x09,
		"9": 0x0a, "0": 0x0b, "minus": 0x0c, "equal": 0x0d, "backspace": 0x0e, "tab": 0x0f, "q": 0x10, "w": 0x11,
		"e": 0x12, "r": 0x13, "t": 0x14, "y": 0x15, "u": 0x16, "i": 0x17, "o": 0x18, "p": 0x19, "bracket_left": 0x1a,
		"bracket_right": 0x1b, "ret": 0x1c, "ctrl": 0x1d, "a": 0x1e, "s": 0x1f, "d": 0x20, "f": 0x21, "g": 0x22,
		"h": 0x23, "j": 0x24, "k": 0x25, "l": 0x26, "semicolon": 0x27, "apostrophe": 0x28, "grave_accent": 0x29,
		"shift": 0x2a, "backslash": 0x2b, "z": 0x2c, "x": 0x2d, "c": 0x2e, "v": 0x2f, "b": 0x30, "n": 0x31,
		"m": 0x32, "comma": 0x33, "dot": 0x34, "slash": 0x35, "shift_r": 0x36, "kp_multiply": 0x37, "alt": 0x38,
		"spc": 0x39, "caps_lock": 0x3a, "f1": 0x3b, "f2": 0x3c, "f3": 0x3d, "f4": 0x3e, "f5": 0x3f, "f6": 0x40,
		"f7": 0x41, "f8": 0x42, "f9": 0x43, "f10": 0x44, "num_lock": 0x45, "scroll_lock": 0x46, "kp_7": 0x47,
		"kp_8": 0x48, "kp_9": 0x49, "kp_subtract": 0x4a, "kp_4": 0x4b, "kp_5": 0x4c, "kp_6": 0x4d, "kp_add": 0x4e,
		"kp_1": 0x4f, "kp_2": 0x50, "kp_3": 0x51, "kp_0": 0x52, "kp_decimal": 0x53, "less": 0x56, "f11": 0x57,
		"f12": 0x58,
	}
}

// extendedTable returns the scan codes that follow the byte 0xe0. The keys of the map are QEMU's
// names of keys.
func extendedTable() map[string]byte {
	return map[string]byte{
		"kp_enter": 0x1c, "ctrl_r": 0x1d, "kp_divide": 0x35, "alt_r": 0x38, "home": 0x47, "up": 0x48, "pgup": 0x49,
		"left": 0x4b, "right": 0x4d, "end": 0x4f, "down": 0x50, "pgdn": 0x51, "insert": 0x52, "delete": 0x53,
		"meta_l": 0x5b, "meta_r": 0x5c, "menu": 0x5d,
	}
}

const (
	extended = 0xe0 // precedes the code of a key that the first keyboards did not have
	released = 0x80 // is added to the code of a key that is released
	// maxKeysAtOnce bounds the keys of a combination, and maxKeys the combinations of a call.
	maxKeysAtOnce, maxKeys = 8, 512
)

// scanCodes returns the codes that press and release a combination such as ctrl-alt-delete.
func scanCodes(combination string) ([]byte, error) {
	codes, more := codeTable(), extendedTable()
	var press, release [][]byte
	for name := range strings.SplitSeq(combination, "-") {
		if code, ok := codes[name]; ok {
			press, release = append(press, []byte{code}), append(release, []byte{code | released})
		} else if code, ok := more[name]; ok {
			press, release = append(press, []byte{extended, code}), append(release, []byte{extended, code | released})
		} else {
			return nil, fmt.Errorf("%.60q is no combination of keys; join QEMU's names, as in ctrl-alt-delete: "+
				"ret, esc, spc, tab, f1, a, 1, shift, ctrl, alt", combination)
		}
	}
	if len(press) > maxKeysAtOnce {
		return nil, fmt.Errorf("%.60q has more than %d keys", combination, maxKeysAtOnce)
	}
	slices.Reverse(release)
	return slices.Concat(append(press, release...)...), nil
}
