package redact

import "bytes"

// prose reports whether the value of a name is the beginning of a sentence that mentions the name, as in "invalid token:
// signature is …" and `failed to fetch token: serviceaccounts "default" not found`. The value is from `start` to `end`.
func (s *scan) prose(begin, start, end int) bool {
	if s.beginsLine(begin) {
		return false
	}
	word := s.text[start:end]
	switch {
	case !s.spaceBefore(end):
		return s.endsSentence(begin) && (isVerdict(word) || isCertificateFile(word))
	case isPlainWord(word):
		next := bytes.TrimLeft(s.text[end+1:], `\`)
		return len(next) > 0 && (isLetter(next[0]) || isQuote(next[0]))
	}
	return s.endsSentence(begin) && (isSubject(word) || isStatus(word) && isLetter(s.text[end+1]))
}

// spaceBefore reports whether a space and more text follow a position.
func (s *scan) spaceBefore(end int) bool { return end+1 < len(s.text) && s.text[end] == ' ' }

// endsSentence reports whether a name is the last word of a sentence, as in "failed to fetch token: …", or of a URL in
// it, as in `Post "https://host/oauth2/token": …`.
func (s *scan) endsSentence(begin int) bool {
	return begin > 1 && (s.text[begin-1] == ' ' || s.text[begin-1] == '/') && isWord(s.text[begin-2])
}

// isPlainWord reports whether a text has only letters, all but the first of them small.
func isPlainWord(text []byte) bool {
	for i, c := range text {
		if !isLetter(c) || i > 0 && c < 'a' {
			return false
		}
	}
	return true
}

// isSubject reports whether a text is the name before the colon of an error, as in "x509: certificate has expired",
// "net/http: TLS handshake timeout" and "unauthorized: authentication required".
func isSubject(text []byte) bool {
	name := bytes.TrimSuffix(text, []byte(":"))
	if len(name) == len(text) || len(name) > len("authentication") {
		return false
	}
	for _, c := range name {
		if !isDigit(c) && (c < 'a' || c > 'z') && c != '/' && c != '.' {
			return false
		}
	}
	return isLetter(text[0])
}

// isStatus reports whether a text is a status of HTTP, as in "401 Unauthorized".
func isStatus(text []byte) bool {
	return len(text) == 3 && text[0] >= '1' && text[0] <= '5' && isDigit(text[1]) && isDigit(text[2])
}

// isVerdict reports whether a word is a whole error, as in "failed to refresh token: EOF".
func isVerdict(word []byte) bool {
	return isOneOf(bytes.TrimRight(word, ".,;:"), "EOF", "Unauthorized", "Forbidden", "unauthorized", "forbidden", "expired",
		"timeout", "invalid", "missing")
}

// isCertificateFile reports whether a word is the name of a certificate's or a key's file, as in "references non-existent
// secret key: tls.crt".
func isCertificateFile(word []byte) bool {
	for _, extension := range []string{".crt", ".key", ".pem", ".cer"} {
		if bytes.HasSuffix(word, []byte(extension)) {
			return true
		}
	}
	return false
}

// mentioned reports whether the word behind an option shows that a sentence mentions the option, as in "cannot use
// --token without --x".
func mentioned(word []byte) bool {
	return isOneOf(word, "without", "and", "or", "is", "must", "flag", "cannot", "requires", "can", "with", "has", "was",
		"should", "will", "option", "to", "in", "for", "because")
}

// countsTests reports whether a value counts tests that pass, as in "pass: 11 fail: 1".
func (s *scan) countsTests(begin int, value []byte) bool {
	end := begin
	for end < len(s.text) && isToken(s.text[end]) {
		end++
	}
	return len(value) <= len("99999") && isNumber(value) && bytes.EqualFold(s.text[begin:end], []byte("pass")) &&
		bytes.Contains(s.text, []byte("fail"))
}
