package redact

import "bytes"

// kind is the meaning of a name. It determines which values after the name are secret.
type kind int

const (
	plain    kind = iota
	password      // a secret, whatever its value
	key           // not a secret if the value is a path, which is the path of the file with the key
	token         // not a secret if the value is a path or a Kubernetes name
	several       // like token, but a number is not a secret: "tokens: 5"
	weak          // a secret only if the value looks random: for names such as SORT_KEY
	folder        // for PWD: not a secret if the value is any path
	auth          // Docker's auth field: base64 of user and password
	header        // Authorization and cookies: the value is the rest of the line
)

const (
	// maxName is the maximum length of a name, in bytes.
	maxName = 64
	// maxParts is how many parts of a name are examined, from its end.
	maxParts = 8
)

// parts is a name in lower case without its separators, with the position of each of its parts.
// The names clientSecret, CLIENT_SECRET and client-secret have the same text and the same parts.
type parts struct {
	text   [maxName]byte
	length int
	begins [maxParts]int
	count  int
	upper  bool // no letter of the name is small, as in the names of environment variables
}

// partsOf parses a name of at most maxName bytes.
func partsOf(name string) (p parts) {
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
		if c >= 'A' && c <= 'Z' && i > 0 { // a capital inside camelCase, or the last capital of DBPassword
			next = next || name[i-1] >= 'a' && name[i-1] <= 'z' || i+1 < len(name) && name[i+1] >= 'a' &&
				name[i+1] <= 'z' && !pluralOfCapitals(name[i:])
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

// pluralOfCapitals reports whether a text begins with the last capital of a plural such as IDs,
// followed by its small s.
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

// trimDigits removes the number at the end of a name such as PASSWORD1.
func (p *parts) trimDigits() {
	for p.length > 0 && isDigit(p.text[p.length-1]) {
		p.length--
		if p.length == p.begins[p.count-1] && p.count > 1 {
			p.count--
		}
	}
}

// qualifies reports whether a part at the end of a name does not affect the meaning of the name,
// such as BASE in SECRET_KEY_BASE or Prod in passwordProd.
func qualifies(part []byte) bool {
	switch string(part) {
	case "base", "value", "val", "hash", "string", "text", "plain", "plaintext", "b64", "base64", "encoded",
		"raw", "cleartext",
		"prod", "production", "dev", "test", "staging", "stage", "qa", "old", "new", "current", "previous", "prev",
		"primary", "secondary", "main", "default", "env", "confirm", "confirmation":
		return true
	}
	return false
}

// kindOf returns the kind of a name.
func kindOf(name string) kind {
	name = name[max(0, len(name)-maxName):]
	if !secretLetters(name) {
		return plain
	}
	p := partsOf(name)
	if p.count == 0 {
		return plain
	}
	if p.upper && isOneOf(p.text[:p.length], "pwd", "oldpwd") {
		return folder
	}
	if k, ok := wholeName(string(p.text[:p.length])); ok {
		return k
	}
	for p.trimDigits(); p.count > 1 && qualifies(p.part(0)); p.trimDigits() {
		p.dropLast()
	}
	if p.length == 0 {
		return plain // the name is only a number
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

// secretLetters reports whether a name contains at least one of a few pairs of letters. A name
// with none of these pairs is not the name of a secret. The test quickly excludes most names.
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
			if b == 'i' || b == 'k' {
				return true
			}
		}
	}
	return false
}

// wholeName returns the kind of a name that has another kind than its ending suggests; the bool is
// false for any other name.
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
		return token, true
	case "masterauth":
		return token, true
	case "dockerconfigjson":
		return key, true
	}
	return plain, false
}

// kind returns the kind of a name. The caller has removed the name's qualifiers and, if plural is
// true, the name's final s.
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
	case "psk":
		return key
	}
	if bytes.HasSuffix(last, []byte("pass")) && len(last) > len("pass") && !isNoPassword(last) {
		return token
	}
	return plain
}

func publicKey(before []byte) bool { return isOneOf(before, "public", "pub", "host", "registry") }

// isNoPassword reports whether a word that ends in pass has nothing to do with passwords, such as bypass
// or compass.
func isNoPassword(word []byte) bool {
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

// of returns the kind of a name with this ending. The kind of a plural excludes more values:
// "tokens: 5" counts tokens, so 5 is not a secret.
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

// endingOf returns the kind of a name by its ending. To add an ending, add it to the endings with
// the same last letter. The name is in lower case and without its separators.
func endingOf(name []byte, plural bool) kind {
	switch name[len(name)-1] {
	case 'd':
		return firstOf(name, plural, ending{"password", password}, ending{"passwd", password}, ending{"pwd", key},
			ending{"passwordd", password})
	case 'e':
		return firstOf(name, plural, ending{"passphrase", password}, ending{"passcode", password},
			ending{"sharedaccesssignature", key}, ending{"cookie", header})
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
			ending{"secretkey", key}, ending{"secretaccesskey", key}, ending{"accesskey", key}, ending{"apikey", key},
			ending{"accountkey", key},
			ending{"storagekey", key}, ending{"privatekey", key}, ending{"encryptionkey", key},
			ending{"signingkey", key}, ending{"sessionkey", key},
			ending{"workspacekey", key}, ending{"agentkey", key}, ending{"registrationkey", key},
			ending{"enrollmentkey", key}, ending{"ingestionkey", key}, ending{"joinkey", key}, ending{"encryptkey", key},
			ending{"integrationkey", weak}, ending{"routingkey", weak},
			ending{"masterkey", key}, ending{"certificatekey", key}, ending{"subscriptionkey", key},
			ending{"sharedkey", key}, ending{"appkey", weak},
			ending{"unsealkey", key}, ending{"licensekey", weak}, ending{"authkey", key}, ending{"deploykey", key},
			ending{"hmackey", key}, ending{"cryptokey", key},
			ending{"sshkey", key}, ending{"decryptionkey", key}, ending{"functionkey", weak},
			ending{"productkey", weak},
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
