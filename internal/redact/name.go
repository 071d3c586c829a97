package redact

// kind is what a name says of the value behind it.
type kind int

const (
	plain    kind = iota
	password      // whatever the value looks like
	key           // not where it is a path: of the file that has the key
	token         // neither where it is a path nor where it is a Kubernetes name
	auth          // Docker's: base64 of user and password
	header        // Authorization: the rest of the line
)

// maxName is how long a name can be, bytes.
const maxName = 64

// endings are what names end in that have a secret behind them; to add one, add
// a line. A name is compared in lower case and without - _ and dots.
func endings(last byte) []ending {
	switch last {
	case 'd':
		return []ending{{"password", password}, {"passwd", password}, {"pwd", key}}
	case 'e':
		return []ending{{"passphrase", password}, {"sharedaccesssignature", key}, {"cookie", header}}
	case 'w':
		return []ending{{"userpw", password}}
	case 't':
		return []ending{{"passwort", password}, {"secret", token}}
	case 'n':
		return []ending{{"token", token}, {"authorization", header}}
	case 'a':
		return []ending{{"clientkeydata", key}}
	case 'y':
		return []ending{
			{"secretkey", key}, {"secretaccesskey", key}, {"accesskey", key}, {"apikey", key}, {"accountkey", key},
			{"storagekey", key}, {"privatekey", key}, {"encryptionkey", key}, {"signingkey", key}, {"sessionkey", key},
			{"masterkey", key}, {"certificatekey", key}, {"subscriptionkey", key},
		}
	case 'g':
		return []ending{{"dockercfg", key}}
	}
	return nil
}

type ending struct {
	text string
	kind kind
}

// kindOf reads a name.
func kindOf(name string) kind {
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	var folded [maxName]byte
	n, component := 0, 0
	for i := range len(name) {
		switch c := name[i]; c {
		case '-', '_', '.', ' ':
			component = n
		default:
			folded[n] = lower(c)
			n++
		}
	}
	if n == 0 {
		return plain
	}
	text := folded[:n]
	switch whole := string(text); whole {
	case "publickeytoken", "cancellationtoken": // .NET's
		return plain
	case "auth":
		return auth
	case "sig", "pw", "pass":
		return token
	case "dockerconfigjson":
		return key
	}
	if last := string(text[component:]); component > 0 && (last == "pass" || last == "pw") {
		return token
	}
	for _, e := range endings(text[n-1]) {
		if n >= len(e.text) && string(text[n-len(e.text):]) == e.text {
			return e.kind
		}
	}
	return plain
}

// harmless is a value that is none, or says where the secret is.
func harmless(value []byte, k kind) bool {
	if len(value) == 0 || len(value) > maxName*4 {
		return false
	}
	if covered(value) || refers(value) {
		return true
	}
	switch string(lowered(value)) {
	case "true", "false", "yes", "no", "null", "nil", "none", "(none)", "enabled", "disabled", "-", "0", "1", "undefined", "redacted", "unset":
		return true
	}
	switch k {
	case key, token:
		return isPath(value) || k == token && isKubernetesName(value)
	case auth:
		return !isBase64(value) || len(value) < 8
	}
	return false
}

// covered is a value that somebody has covered already.
func covered(value []byte) bool {
	first := value[0]
	for _, c := range value {
		if c != first {
			return false
		}
	}
	return first == '*' || first == 'x' || first == 'X' || first == '.'
}

// refers is ${NAME}, $(NAME), %NAME%, <placeholder> or an event's %%1842.
func refers(value []byte) bool {
	n := len(value)
	if n < 3 {
		return false
	}
	switch value[0] {
	case '$':
		return value[1] == '{' || value[1] == '('
	case '%':
		return value[1] == '%' || value[n-1] == '%'
	case '<':
		return value[n-1] == '>'
	}
	return false
}

func isPath(value []byte) bool {
	if len(value) > 2 && isLetter(value[0]) && value[1] == ':' && (value[2] == '\\' || value[2] == '/') {
		return true
	}
	for _, folder := range []string{"/var/", "/etc/", "/run/", "/opt/", "file:", `\\`, "%systemdrive%", "/home/", "/usr/"} {
		if len(value) > len(folder) && string(lowered(value[:len(folder)])) == folder {
			return true
		}
	}
	return string(value) == "/"
}

// isKubernetesName is namespace/name, of a Secret, as kubelet logs it.
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

func lowered(text []byte) []byte {
	out := make([]byte, len(text))
	for i, c := range text {
		out[i] = lower(c)
	}
	return out
}
