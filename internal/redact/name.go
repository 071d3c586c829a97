package redact

import "bytes"

// kind is what a name says about the value behind it.
type kind int

const (
	plain    kind = iota
	password      // a secret, whatever the value looks like
	key           // no secret if it is a path: of the file that has the key
	token         // no secret if it is a path or a Kubernetes name
	several       // as token, but numbers count them: "tokens: 5"
	weak          // a secret only if it looks like one: names such as SORT_KEY and tokens
	folder        // PWD: no secret if it is any path
	auth          // Docker's: base64 of user and password
	header        // Authorization: the rest of the line
)

const (
	// maxName is how long a name can be, bytes.
	maxName = 64
	// maxParts is how many parts of a name are looked at, from its end.
	maxParts = 8
)

// parts are a name in lower case without its separators, and where each of its
// parts begins: clientSecret, CLIENT_SECRET and client-secret are the same.
type parts struct {
	text   [maxName]byte
	length int
	begins [maxParts]int
	count  int
	upper  bool // the name is written in capitals alone, as environment variables are
}

func partsOf(name string) (p parts) {
	name = name[max(0, len(name)-maxName):]
	p.upper = true
	next := true
	for i := range len(name) {
		c := name[i]
		if !isLetter(c) && !isDigit(c) {
			next = true
			continue
		}
		isSmall := c >= 'a'
		p.upper = p.upper && !isSmall
		if c >= 'A' && c <= 'Z' && i > 0 { // the hump of camelCase, the last capital of DBPassword
			next = next || name[i-1] >= 'a' && name[i-1] <= 'z' || i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z' && !pluralOfCapitals(name[i:])
		}
		if next {
			p.begin()
			next = false
		}
		p.text[p.length] = lower(c)
		p.length++
	}
	return p
}

// pluralOfCapitals reports whether a name in capitals ends in a small s: "Ds" of IDs.
func pluralOfCapitals(rest string) bool {
	return len(rest) >= 2 && rest[1] == 's' && (len(rest) == 2 || !isLetter(rest[2]))
}

func (p *parts) begin() {
	if p.count == maxParts {
		copy(p.begins[:], p.begins[1:])
		p.count--
	}
	p.begins[p.count] = p.length
	p.count++
}

// part returns the nth part from the end; nil if there is none.
func (p *parts) part(n int) []byte {
	if n >= p.count {
		return nil
	}
	at := p.count - 1 - n
	end := p.length
	if n > 0 {
		end = p.begins[at+1]
	}
	return p.text[p.begins[at]:end]
}

// dropLast removes the last part.
func (p *parts) dropLast() {
	p.count--
	p.length = p.begins[p.count]
}

// trimDigits removes the number at the end of PASSWORD1.
func (p *parts) trimDigits() {
	for p.length > 0 && isDigit(p.text[p.length-1]) {
		p.length--
		if p.length == p.begins[p.count-1] && p.count > 1 {
			p.count--
		}
	}
}

// qualifies reports whether a part at the end of a name says nothing about what the
// name is of: SECRET_KEY_BASE, passwordProd.
func qualifies(part []byte) bool {
	switch string(part) {
	case "base", "value", "val", "hash", "string", "text", "plain", "plaintext", "b64", "base64", "encoded", "raw", "cleartext",
		"prod", "production", "dev", "test", "staging", "stage", "qa", "old", "new", "current", "previous", "prev",
		"primary", "secondary", "main", "default", "env", "confirm", "confirmation":
		return true
	}
	return false
}

// kindOf reads a name.
func kindOf(name string) kind {
	if !secretLetters(name) {
		return plain
	}
	p := partsOf(name)
	if p.count == 0 {
		return plain
	}
	if k, ok := wholeName(string(p.text[:p.length])); ok {
		return k
	}
	for p.trimDigits(); p.count > 1 && qualifies(p.part(0)); p.trimDigits() {
		p.dropLast()
	}
	if k := p.kind(false); k != plain {
		return k
	}
	if p.length > 4 && p.text[p.length-1] == 's' && len(p.part(0)) > 1 {
		p.length--
		return p.kind(true)
	}
	return plain
}

// secretLetters spares most names a closer look: each that is a secret's has one
// of these pairs of letters.
func secretLetters(name string) bool {
	for i := 1; i < len(name); i++ {
		switch a, b := lower(name[i-1]), lower(name[i]); a {
		case 'p':
			if b == 'a' || b == 'w' {
				return true
			}
		case 'k':
			if b == 'e' {
				return true
			}
		case 'c':
			if b == 'r' || b == 'f' {
				return true
			}
		case 'o':
			if b == 'k' {
				return true
			}
		case 'a':
			if b == 'u' {
				return true
			}
		case 's':
			if b == 'i' {
				return true
			}
		}
	}
	return false
}

// wholeName knows names that are not as their ending.
func wholeName(name string) (kind, bool) {
	switch name {
	case "publickeytoken", "cancellationtoken", // .NET's
		"secrets", "imagepullsecrets", "pullsecrets", // names of Secrets
		"pagetoken", "nextpagetoken", "continuetoken", "synctoken", "bypass", "compass", "elevatedtoken", "linkedtoken":
		return plain, true
	case "auth":
		return auth, true
	case "sig", "pw":
		return token, true
	case "pass":
		return weak, true
	case "pwd", "oldpwd":
		return folder, true
	case "masterauth":
		return token, true
	case "dockerconfigjson":
		return key, true
	}
	return plain, false
}

// kind is that of a name without its plural and its qualifiers.
func (p *parts) kind(plural bool) kind {
	text := p.text[:p.length]
	if k := endingOf(text, plural); k != plain {
		return k
	}
	last := p.part(0)
	switch string(last) {
	case "pass", "pw":
		if p.count > 1 {
			return token
		}
	case "pat":
		if p.count > 1 {
			return weak
		}
	case "key":
		if p.upper && p.count > 1 && !publicKey(p.part(1)) {
			return weak
		}
	case "cred":
		return weak
	}
	if bytes.HasSuffix(last, []byte("pass")) && len(last) > len("pass") && !passing(last) {
		return token
	}
	return plain
}

func publicKey(before []byte) bool { return isOneOf(before, "public", "pub", "host", "registry") }

// passing reports whether a word that ends in pass is not about passwords.
func passing(word []byte) bool {
	for _, w := range []string{"bypass", "compass", "surpass", "trespass", "overpass", "underpass", "multipass"} {
		if bytes.HasSuffix(word, []byte(w)) {
			return true
		}
	}
	return false
}

type ending struct {
	text string
	kind kind
}

// of is the kind of a name with this ending, or of its plural: "tokens: 5" counts
// them.
func (e ending) of(plural bool) kind {
	switch {
	case !plural:
		return e.kind
	case e.text == "cookie":
		return plain
	case e.kind == password:
		return key
	case e.kind == weak:
		return weak
	}
	return several
}

// endingOf is the kind of a name by its ending; to add an ending, add it to those of
// its last letter. The name is in lower case and without its separators.
func endingOf(name []byte, plural bool) kind {
	switch name[len(name)-1] {
	case 'd':
		return firstOf(name, plural, ending{"password", password}, ending{"passwd", password}, ending{"pwd", key}, ending{"passwordd", password})
	case 'e':
		return firstOf(name, plural, ending{"passphrase", password}, ending{"passcode", password}, ending{"sharedaccesssignature", key}, ending{"cookie", header})
	case 'w':
		return firstOf(name, plural, ending{"userpw", password}, ending{"bindpw", token}, ending{"rootpw", token})
	case 't':
		return firstOf(name, plural, ending{"passwort", password}, ending{"secret", token})
	case 'n':
		return firstOf(name, plural, ending{"token", token}, ending{"authorization", header})
	case 'a':
		return firstOf(name, plural, ending{"clientkeydata", key})
	case 'h':
		return firstOf(name, plural, ending{"registryauth", auth})
	case 'l':
		return firstOf(name, plural, ending{"credential", weak}, ending{"keymaterial", key})
	case 'y':
		return firstOf(name, plural,
			ending{"secretkey", key}, ending{"secretaccesskey", key}, ending{"accesskey", key}, ending{"apikey", key}, ending{"accountkey", key},
			ending{"storagekey", key}, ending{"privatekey", key}, ending{"encryptionkey", key}, ending{"signingkey", key}, ending{"sessionkey", key},
			ending{"masterkey", key}, ending{"certificatekey", key}, ending{"subscriptionkey", key}, ending{"sharedkey", key}, ending{"appkey", weak},
			ending{"unsealkey", key}, ending{"licensekey", weak}, ending{"authkey", key}, ending{"deploykey", key}, ending{"hmackey", key}, ending{"cryptokey", key},
			ending{"sshkey", key}, ending{"decryptionkey", key}, ending{"functionkey", weak}, ending{"productkey", weak},
		)
	case 'g':
		return firstOf(name, plural, ending{"dockercfg", key})
	}
	return plain
}

func firstOf(name []byte, plural bool, endings ...ending) kind {
	for _, e := range endings {
		if bytes.HasSuffix(name, []byte(e.text)) {
			return e.of(plural)
		}
	}
	return plain
}

// harmless reports whether a value is none, or says where the secret is.
func harmless(value []byte, k kind) bool {
	if len(value) == 0 {
		return false
	}
	if len(value) > maxName*4 {
		return false
	}
	if covered(value) || refers(value) {
		return true
	}
	if len(value) <= len("undefined") && isNoValue(value) {
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

// leastWeak is how long a value is at least that is a secret by its look.
const leastWeak = 6

func isNoValue(value []byte) bool {
	var text [16]byte
	for i, c := range value {
		text[i] = lower(c)
	}
	switch string(text[:len(value)]) {
	case "true", "false", "yes", "no", "null", "nil", "none", "read", "write", "(none)", "<nil>", "<none>", "enabled", "disabled", "-", "0", "1", "undefined", "redacted", "unset", "...":
		return true
	}
	return false
}

// random reports whether a value may be a secret that a machine or a careful person
// made: it has letters and digits, or letters and signs, and is no number, time,
// quantity or identifier that logs are full of.
func random(value []byte, least int) bool {
	if len(value) < least || isIdentifier(value) {
		return false
	}
	digits, letters, signs, capitals := 0, 0, 0, 0
	for _, c := range value {
		switch {
		case isDigit(c):
			digits++
		case isLetter(c):
			letters++
			if c <= 'Z' {
				capitals++
			}
		case c != '-' && c != '_' && c != '.' && c != ':' && c != '/' && c != ',' && c != '(' && c != ')' && c != '[' && c != ']':
			signs++
		}
	}
	if letters < 2 && signs == 0 {
		return false
	}
	return digits > 0 && letters > 1 || signs > 0 && letters > 0 && digits > 0
}

// isIdentifier reports whether a value names something else than a secret: a UUID,
// a digest, a container's id, an address of memory.
func isIdentifier(value []byte) bool {
	switch {
	case bytes.HasPrefix(value, []byte("sha256:")), bytes.HasPrefix(value, []byte("0x")):
		return true
	case len(value) == 36 && value[8] == '-' && value[13] == '-' && value[18] == '-' && value[23] == '-':
		return true
	}
	return false
}

// covered is a value that was covered before.
func covered(value []byte) bool {
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

// refers is ${NAME}, $(NAME), %NAME%, <placeholder> or an event's %%1842.
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
	for _, folder := range []string{"/var/", "/etc/", "/run/", "/opt/", "file:", `\\`, "%systemdrive%", "/home/", "/usr/", "~/", "./", "../", "$home", "hklm", "hkey_", "hkcu"} {
		if len(value) > len(folder) && bytes.EqualFold(value[:len(folder)], []byte(folder)) {
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
