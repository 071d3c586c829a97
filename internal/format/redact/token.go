package redact

import (
	"bytes"
	"encoding/base64"
)

// known is a secret with a typical beginning.
type known struct {
	prefix string
	least  int // minimum number of characters behind the prefix
	of     func(byte) bool
}

// knownTokens returns the known secrets that begin with a letter. To add a secret, add a line
// here and the secret's first three characters to beginsToken.
func knownTokens(first byte) []known {
	switch first {
	case 'A':
		return []known{
			{"ABSK", 100, isBase64Byte},
			{"AKIA", 16, isUpper}, {"ASIA", 16, isUpper}, {"ABIA", 16, isUpper}, {"ACCA", 16, isUpper},
			{"AIza", 35, isToken},
			{"AGE-SECRET-KEY-1", 40, isUpper}, {"AKCp", 60, isWord}, {"ATATT3xFfGF0", 60, isBase64URL},
		}
	case 'e':
		return []known{{"eyJ", 10, isToken}} // a JWT's header, see jwt
	case 'Z':
		return []known{{"ZXlKaGJHY2lPaUp", 20, isBase64Byte}, {"ZXlK", 40, isBase64Byte}} // base64 of a JWT, as in a Secret
	case 'L':
		return []known{{"LS0tLS1CRUdJTi", 30, isBase64Byte}} // base64 of a PEM block
	case 'C':
		return []known{{"CLOJARS_", 60, isWord}}
	case 'E':
		return []known{{"EAAM", 90, isWord}, {"EAAC", 90, isWord}, {"EZAK", 54, isWord}, {"EZTK", 54, isWord}}
	case 'a':
		return []known{{"api_org_", 34, isLetter}}
	case 'o':
		return []known{{"ops_eyJ", 100, isBase64Byte}}
	case 'v':
		return []known{{"v1.0-", 100, isToken}} // Cloudflare's origin CA
	case 'Q':
		return []known{{"QmVhcmVyIGV5S", 40, isBase64Byte}} // base64 of Bearer and a JWT
	case 'K':
		return []known{{"K10", 32, isHex}} // k3s and rke2, see clusterToken
	case 'g':
		return []known{
			{"ghp_", 30, isWord}, {"gho_", 30, isWord}, {"ghu_", 30, isWord}, {"ghs_", 30, isWord},
			{"ghr_", 30, isWord},
			{"github_pat_", 30, isWord}, {"glpat-", 16, isBase64URL}, {"gldt-", 16, isToken},
			{"glrt-", 16, isBase64URL}, {"glcbt-", 16, isToken},
			{"glptt-", 16, isToken}, {"glft-", 16, isToken}, {"glsoat-", 16, isToken}, {"glimt-", 16, isToken},
			{"glagent-", 16, isToken},
			{"glsa_", 32, isWord}, {"glc_", 32, isBase64Byte},
		}
	case 'G':
		return []known{{"GOCSPX-", 20, isToken}}
	case 'x':
		return []known{
			{"xoxb-", 16, isToken}, {"xoxp-", 16, isToken}, {"xoxa-", 16, isToken}, {"xoxr-", 16, isToken},
			{"xoxs-", 16, isToken},
			{"xoxo-", 16, isToken}, {"xoxc-", 16, isToken}, {"xoxd-", 16, isToken}, {"xoxe.", 16, isBase64URL},
			{"xoxe-", 16, isToken}, {"xapp-", 16, isToken},
		}
	case 'n':
		return []known{{"npm_", 30, isWord}, {"ntn_", 40, isWord}}
	case 'h':
		// Vault, Hugging Face
		return []known{{"hvs.", 20, isToken}, {"hvb.", 20, isToken}, {"hvr.", 20, isToken}, {"hf_", 30, isWord}}
	case 's':
		return []known{{"sk_live_", 16, isWord}, {"sk_test_", 16, isWord}, {"sk_prod_", 16, isWord}, {"sk-", 40, isToken}, {"shpat_", 32, isWord},
			{"shpss_", 32, isWord},
			{"shippo_", 40, isWord}, {"s-s4t2", 60, isToken}, {"sntrys_", 40, isBase64URL},
			{"sgp_", 40, isWord}, {"sha256~", 40, isToken}}
	case 'r':
		return []known{{"rk_live_", 16, isWord}, {"rk_test_", 16, isWord}, {"rk_prod_", 16, isWord}, {"rubygems_", 40, isWord}}
	case 'd':
		return []known{{"dckr_pat_", 20, isToken}, {"dckr_oat_", 20, isToken}, {"dop_v1_", 40, isWord},
			{"doo_v1_", 40, isWord}, {"dor_v1_", 40, isWord}, {"dapi", 32, isHex}, {"dp.pt.", 40, isWord},
			{"dp.st.", 40, isBase64URL}, {"duffel_", 43, isBase64URL}}
	case 'p':
		return []known{{"pypi-AgE", 40, isToken}, {"pul-", 40, isHex}, {"pscale_tkn_", 32, isBase64URL},
			{"pscale_pw_", 32, isBase64URL}}
	case 'S':
		return []known{{"SG.", 60, isBase64URL}, {"SWMTKN-1-", 60, isToken}, {"SK", 32, isHex}}
	case 'N':
		return []known{{"NRAK-", 27, isUpper}}
	case 'H':
		return []known{{"HRKU-", 32, isToken}}
	case 'P':
		return []known{{"PMAK-", 50, isToken}}
	case 'f':
		return []known{{"fo1_", 40, isToken}, {"fm1_", 100, isBase64Byte}, {"fm2_", 100, isBase64Byte}}
	case 'l':
		return []known{{"lin_api_", 32, isWord}}
	case 't':
		return []known{{"tskey-", 24, isToken}}
	case 'y':
		return []known{{"ya29.", 30, isToken}}
	}
	return nil
}

// tokenAt returns the end of the token that begins at the position `from`, or 0 if no token begins
// there. The first word of the token ends at `wordEnd`.
func (s *scan) tokenAt(from, wordEnd int) int {
	text := s.text[from:]
	if !beginsToken(text) {
		return s.otherToken(from, wordEnd)
	}
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
		case "ZXlK":
			if !encodesJWT(s.text[from:end]) {
				continue
			}
		case "K10":
			return s.clusterToken(end)
		case "LS0tLS1CRUdJTi":
			if !encodesPrivateKey(s.text[from:end]) {
				continue
			}
		}
		return end
	}
	return s.otherToken(from, wordEnd)
}

// beginsToken reports whether a text may begin with a token of the table, by the text's first
// three characters. It quickly excludes most words.
func beginsToken(text []byte) bool {
	if len(text) < 3 {
		return false
	}
	switch string(text[:3]) {
	case "ABI", "ABS", "ACC", "AGE", "AIz", "AKC", "AKI", "ASI", "ATA", "CLO", "EAA", "EZA", "EZT", "GOC", "HRK", "K10", "LS0", "NRA", "PMA", "QmV", "SG.", "SWM", "ZXl", "api", "dap",
		"dck", "doo", "dop", "dor", "dp.", "duf", "eyJ", "fm1", "fm2", "fo1", "gho", "ghp", "ghr", "ghs", "ghu", "git", "gla", "glc", "gld",
		"glf", "gli", "glp", "glr", "gls", "hf_", "hvb", "hvr", "hvs", "lin", "npm", "ntn", "ops", "psc", "pul", "pyp", "rk_", "rub",
		"s-s", "sgp", "sha", "shi", "shp", "sk-", "sk_", "snt", "tsk", "v1.", "xap", "xox", "ya2":
		return true
	}
	return string(text[:2]) == "SK" && isHex(text[2])
}

// otherToken returns the end of a token whose first word has a typical length, or 0.
func (s *scan) otherToken(from, wordEnd int) int {
	switch length := wordEnd - from; {
	case length == 6:
		return s.bootstrapToken(from)
	case length >= 8 && length <= 14 || length == 84:
		return s.longToken(from, wordEnd)
	}
	return 0
}

// longToken returns the end of a token that is detected by text inside or behind its first word, or
// 0.
func (s *scan) longToken(from, end int) int {
	switch length := end - from; {
	case length == 14 && bytes.HasPrefix(s.text[end:], []byte(".atlasv1.")): // Terraform Cloud
		for end < len(s.text) && isBase64URL(s.text[end]) {
			end++
		}
		return end
	case length == 84 && string(s.text[end-8:end-4]) == "AZDO":
		return end
	// Telegram
	case length >= 8 && length <= 10 && isDigit(s.text[from]) && bytes.HasPrefix(s.text[end:], []byte(":AA")):
		begin := end + 1
		for end = begin; end < len(s.text) && isToken(s.text[end]); end++ {
		}
		if end-begin == 35 {
			return end
		}
	}
	return 0
}

// jwt returns the end of a JWT whose first part ends at the position `end`, or 0. A JWT has two or
// four more parts, of which the last may be empty.
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

// bootstrapToken returns the end of a bootstrap token of kubeadm, or 0. Such a token has six
// characters, a dot, and sixteen characters. The name of a Kubernetes event may look the same,
// but the sixteen characters in such a name are the hexadecimal digits of a number.
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

// encodesPrivateKey reports whether a base64 text contains a private key. It decodes only the
// beginning.
func encodesPrivateKey(text []byte) bool {
	head := text[:min(len(text), 96)&^3]
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(head)))
	n, err := base64.StdEncoding.Decode(decoded, head)
	return err == nil && bytes.Contains(decoded[:n], []byte("PRIVATE KEY"))
}

// encodesJWT reports whether a base64 text contains a JWT. It decodes only the beginning, which is the JWT's header.
func encodesJWT(text []byte) bool {
	head := text[:40]
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(head)))
	n, err := base64.StdEncoding.Decode(decoded, head)
	for _, c := range decoded[:n] {
		if !isToken(c) && c != '.' {
			return false
		}
	}
	return err == nil
}

// clusterToken returns the end of a token of k3s or rke2, K10<hash>::<user>:<secret>, whose hash ends at the position
// `end`; 0 if it is no such token.
func (s *scan) clusterToken(end int) int {
	if !bytes.HasPrefix(s.text[end:], []byte("::")) {
		return 0
	}
	for end < len(s.text) && (isToken(s.text[end]) || s.text[end] == ':' || s.text[end] == '.') {
		end++
	}
	return end
}

// credentials reports whether a text is a credential of HTTP Basic authentication, the
// base64 of user:password.
func credentials(text []byte) bool {
	text = bytes.TrimRight(text, "=")
	if len(text) < 4 {
		return false
	}
	decoded := make([]byte, base64.RawStdEncoding.DecodedLen(len(text)))
	n, err := base64.RawStdEncoding.Decode(decoded, text)
	return err == nil && bytes.IndexByte(decoded[:n], ':') >= 0
}

// mixed reports whether a text looks like a random string and not like a word.
func mixed(text []byte) bool {
	var digit, capital, small bool
	for _, c := range text {
		digit = digit || isDigit(c)
		capital = capital || c >= 'A' && c <= 'Z'
		small = small || c >= 'a' && c <= 'z'
	}
	return digit && (capital || small) || capital && small && len(text) >= 20
}

// isBody reports whether a line looks like a line from the middle of a key: it is exactly 64 or
// 76 characters of base64, with digits, capitals and small letters.
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

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

// isWord reports whether a character is a letter, a digit or _. It is called
// for most characters of a text, and a table is faster than comparisons.
func isWord(c byte) bool {
	const digits, letters = "\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01",
		"\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01"
	const none = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	const table = none + none + none + digits + "\x00\x00\x00\x00\x00\x00\x00" + letters + "\x00\x00\x00\x00\x01\x00" +
		letters + "\x00\x00\x00\x00\x00" +
		none + none + none + none + none + none + none + none
	return table[c] != 0
}

func isToken(c byte) bool      { return isWord(c) || c == '-' }
func isUpper(c byte) bool      { return c >= 'A' && c <= 'Z' || isDigit(c) }
func isBase64URL(c byte) bool  { return isToken(c) || c == '.' || c == '=' }
func isHex(c byte) bool        { return isDigit(c) || c >= 'a' && c <= 'f' }
func isBase64Byte(c byte) bool { return isLetter(c) || isDigit(c) || c == '+' || c == '/' || c == '=' }
