package redact

import "bytes"

// harmless reports whether a value is not a secret, or only refers to one.
func harmless(value []byte, k kind) bool {
	if len(value) == 0 {
		return false
	}
	if len(value) > maxName*4 {
		return false
	}
	if alreadyRedacted(value) || refers(value) {
		return true
	}
	if len(value) <= len("offlineServicing") && isNoValue(value) {
		return true
	}
	switch k {
	case key:
		return isPath(value) || len(value) == 1
	case folder:
		return isPath(value) || value[0] == '/'
	case token:
		return isPath(value) || isKubernetesName(value)
	case several:
		return isPath(value) || isKubernetesName(value) || isNumber(value)
	case weak:
		return isPath(value) || isKubernetesName(value) || !random(value, leastWeak)
	case auth:
		return !isBase64(value) || len(value) < 8
	}
	return false
}

func isNoValue(value []byte) bool {
	var text [16]byte
	for i, c := range value {
		text[i] = lower(c)
	}
	switch string(text[:len(value)]) {
	case "true", "false", "yes", "no", "null", "nil", "none", "read", "write", "(none)", "<nil>", "<none>", "enabled",
		"disabled", "-", "0", "1", "undefined", "redacted", "unset", "...",
		// passes of Windows Setup
		"windowspe", "offlineservicing", "generalize", "specialize", "auditsystem", "audituser", "oobesystem":
		return true
	}
	return false
}

// random reports whether a value may be a generated or carefully chosen secret: it is not shorter
// than `least` bytes, and has a digit and two letters, or a digit, a letter and a sign. An
// identifier, such as a UUID, is not random.
func random(value []byte, least int) bool {
	if len(value) < least || isIdentifier(value) {
		return false
	}
	digits, letters, signs := 0, 0, 0
	for _, c := range value {
		switch {
		case isDigit(c):
			digits++
		case isLetter(c):
			letters++
		case c != '-' && c != '_' && c != '.' && c != ':' && c != '/' && c != ',' && c != '(' && c != ')' &&
			c != '[' && c != ']':
			signs++
		}
	}
	return digits > 0 && (letters > 1 || signs > 0 && letters > 0)
}

// isIdentifier reports whether a value identifies something that is not a
// secret: a UUID, a SHA-256 digest or a memory address.
func isIdentifier(value []byte) bool {
	switch {
	case bytes.HasPrefix(value, []byte("sha256:")), bytes.HasPrefix(value, []byte("0x")):
		return true
	case len(value) == 36 && value[8] == '-' && value[13] == '-' && value[18] == '-' && value[23] == '-':
		return true
	}
	return false
}

// alreadyRedacted reports whether a value was redacted before.
func alreadyRedacted(value []byte) bool {
	first := value[0]
	if first != '*' && first != 'x' && first != 'X' && first != '.' {
		return bytes.HasPrefix(value, []byte(Mark)) && len(value) <= len(Mark)+1
	}
	for _, c := range value {
		if c != first {
			return false
		}
	}
	return true
}

// refers reports whether a value is $NAME, ${NAME}, $(NAME), %NAME%, <placeholder>
// or an event's %%1842.
func refers(value []byte) bool {
	n := len(value)
	if n < 3 {
		return false
	}
	switch value[0] {
	case '$':
		return value[1] == '{' || value[1] == '(' || isVariable(value[1:])
	case '%':
		return value[1] == '%' || value[n-1] == '%'
	case '<':
		return value[n-1] == '>'
	}
	return false
}

// isVariable reports whether a text is the name of an environment variable.
func isVariable(text []byte) bool {
	for _, c := range text {
		if c != '_' && !isUpper(c) {
			return false
		}
	}
	return !isDigit(text[0])
}

func isPath(value []byte) bool {
	if len(value) > 2 && isLetter(value[0]) && value[1] == ':' && (value[2] == '\\' || value[2] == '/') {
		return true
	}
	for _, folder := range []string{"/var/", "/etc/", "/run/", "/opt/", "file:", `\\`, "%systemdrive%", "/home/",
		"/usr/", "~/", "./", "../", "$home", "hklm", "hkey_", "hkcu"} {
		if len(value) > len(folder) && bytes.EqualFold(value[:len(folder)], []byte(folder)) {
			return true
		}
	}
	return string(value) == "/"
}

// isKubernetesName reports whether a value has the form namespace/name, in which kubelet logs the
// name of a Secret.
func isKubernetesName(value []byte) bool {
	slashes := 0
	for _, c := range value {
		switch {
		case c == '/':
			slashes++
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '.':
		default:
			return false
		}
	}
	return slashes == 1
}

// leastWeak is the minimum length of a value that is a secret because it looks random.
const leastWeak = 6
