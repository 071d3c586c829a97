package redact

import (
	"bytes"
	"encoding/base64"
)

// known is a secret that begins in a way of its own.
type known struct {
	prefix string
	least  int // characters behind the prefix
	of     func(byte) bool
}

// knownTokens by their first letter; to add one, add a line.
func knownTokens(first byte) []known {
	switch first {
	case 'A':
		return []known{{"AKIA", 16, isUpper}, {"ASIA", 16, isUpper}, {"AIza", 35, isToken}}
	case 'e':
		return []known{{"eyJ", 10, isToken}} // a JWT's header, see jwt
	case 'Z':
		return []known{{"ZXlKaGJHY2lPaUp", 20, isBase64Byte}} // base64 of a JWT, as in a Secret
	case 'L':
		return []known{{"LS0tLS1CRUdJTi", 30, isBase64Byte}} // base64 of a PEM block
	case 'g':
		return []known{
			{"ghp_", 30, isWord}, {"gho_", 30, isWord}, {"ghu_", 30, isWord}, {"ghs_", 30, isWord}, {"ghr_", 30, isWord},
			{"github_pat_", 30, isWord}, {"glpat-", 16, isToken},
		}
	case 'x':
		return []known{{"xoxb-", 16, isToken}, {"xoxp-", 16, isToken}, {"xoxa-", 16, isToken}, {"xoxr-", 16, isToken}, {"xoxs-", 16, isToken}}
	case 'n':
		return []known{{"npm_", 30, isWord}}
	case 'h':
		return []known{{"hvs.", 20, isToken}} // Vault
	case 's':
		return []known{{"sk_live_", 16, isWord}, {"sk-", 40, isToken}}
	}
	return nil
}

// tokenAt is the end of the secret that the word at from begins, or 0.
func (s *scan) tokenAt(from int) int {
	text := s.text[from:]
	for _, k := range knownTokens(text[0]) {
		if !bytes.HasPrefix(text, []byte(k.prefix)) {
			continue
		}
		end := from + len(k.prefix)
		for end < len(s.text) && k.of(s.text[end]) {
			end++
		}
		if end-from-len(k.prefix) < k.least {
			continue
		}
		switch k.prefix {
		case "eyJ":
			return s.jwt(end)
		case "LS0tLS1CRUdJTi":
			if !encodesPrivateKey(s.text[from:end]) {
				continue
			}
		}
		return end
	}
	return s.bootstrapToken(from)
}

// jwt has two more parts, or four; the last may be empty.
func (s *scan) jwt(end int) int {
	parts := 0
	for end < len(s.text) && s.text[end] == '.' {
		parts++
		end++
		for end < len(s.text) && isToken(s.text[end]) {
			end++
		}
	}
	if parts == 0 && (end < len(s.text) || s.ends) {
		return 0
	}
	return end
}

// bootstrapToken is kubeadm's: six characters, a dot, sixteen. The name of a
// Kubernetes event may look the same, but its sixteen are a number's.
func (s *scan) bootstrapToken(from int) int {
	const id, secret = 6, 16
	end := from + id + 1 + secret
	if end > len(s.text) || s.text[from+id] != '.' || end < len(s.text) && (isWord(s.text[end]) || s.text[end] == '-') {
		return 0
	}
	if before := s.before(from); before == '.' || before == '-' {
		return 0
	}
	number := true
	for i, c := range s.text[from:end] {
		if i == id {
			continue
		}
		if !isDigit(c) && (c < 'a' || c > 'z') {
			return 0
		}
		if i > id && c > 'f' {
			number = false
		}
	}
	if number {
		return 0
	}
	return end
}

// azureSecret is an application's: somewhere in it stands a digit and Q~.
func azureSecret(word []byte) bool {
	at := bytes.Index(word, []byte("Q~"))
	return at == 4 && len(word) >= 36 && len(word) <= 44 && isDigit(word[3])
}

// encodesPrivateKey looks into base64.
func encodesPrivateKey(text []byte) bool {
	head := text[:min(len(text), 96)&^3]
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(head)))
	n, err := base64.StdEncoding.Decode(decoded, head)
	return err == nil && bytes.Contains(decoded[:n], []byte("PRIVATE KEY"))
}

// credentials are Basic's: base64 of user:password.
func credentials(text []byte) bool {
	text = bytes.TrimRight(text, "=")
	if len(text) < 4 {
		return false
	}
	decoded := make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
	n, err := base64.RawStdEncoding.Decode(decoded, text)
	return err == nil && bytes.IndexByte(decoded[:n], ':') >= 0
}

// mixed is what a random string is and a word is not.
func mixed(text []byte) bool {
	var digit, capital, small bool
	for _, c := range text {
		digit = digit || isDigit(c)
		capital = capital || c >= 'A' && c <= 'Z'
		small = small || c >= 'a' && c <= 'z'
	}
	return digit && (capital || small) || capital && small && len(text) >= 20
}

// isBody is whether a line is one of a key's, of which the beginning is not
// here: 64 or 76 characters of base64 and nothing else.
func isBody(line []byte) bool {
	if len(line) != 64 && len(line) != 76 || !isBase64(line) {
		return false
	}
	var digit, capital, small bool
	for _, c := range line {
		digit, capital, small = digit || isDigit(c), capital || c >= 'A' && c <= 'Z', small || c >= 'a' && c <= 'z'
	}
	return digit && capital && small
}

func isBase64(text []byte) bool {
	for _, c := range text {
		if !isBase64Byte(c) {
			return false
		}
	}
	return len(text) > 0
}

func isLetter(c byte) bool     { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool      { return c >= '0' && c <= '9' }
func isWord(c byte) bool       { return isLetter(c) || isDigit(c) || c == '_' }
func isToken(c byte) bool      { return isWord(c) || c == '-' }
func isUpper(c byte) bool      { return c >= 'A' && c <= 'Z' || isDigit(c) }
func isBase64Byte(c byte) bool { return isLetter(c) || isDigit(c) || c == '+' || c == '/' || c == '=' }
