package redact

import "bytes"

const (
	// leastNeighbour is the minimum length of a word beside "token" or "key" that is redacted.
	leastNeighbour = 16
	// leastPassword is the minimum length of a word beside "password" that is redacted.
	leastPassword = 6
	// between is the number of words that are examined behind a word that suggests a secret. So at
	// most three words may be between that word and the redacted word.
	between = 4
)

// redactNeighbour redacts a word that looks random beside a word that suggests a secret, as in
// "using password S3cr3tPass99".
func (s *scan) redactNeighbour(at, end int) int {
	if end-at < 3 || end-at > 12 || end+1 >= len(s.text) || s.text[end] != ' ' {
		return 0
	}
	least := suspicion(s.text[at:end])
	if least == 0 {
		return 0
	}
	if isOneOf(s.text[at:end], "key", "Key", "KEY") && kindOf(string(s.text[s.wordBefore(at):end])) == plain {
		return 0
	}
	start := end + 1
	for range between {
		stop := start
		for stop < len(s.text) && !endsWord(s.text[stop]) {
			stop++
		}
		word, from := s.text[start:stop], start
		if quote, slashes := s.quote(start); quote != 0 {
			from = start + slashes + 1
			stop, _ = s.valueEnd(from, terminator{quote: quote, slashes: slashes})
			word = s.text[from:stop]
			if bytes.IndexByte(word, ' ') >= 0 {
				return 0
			}
		}
		word = bytes.TrimRight(word, ".,;:!?)")
		switch {
		case looksSecret(word, least):
			s.add(span{from: at, start: from, end: from + len(word), open: from+len(word) == len(s.text),
				until: terminator{by: endsWord}})
			return from + len(word)
		case !connects(word) || stop >= len(s.text) || s.text[stop] != ' ':
			return 0
		}
		start = stop + 1
	}
	return 0
}

func endsWord(c byte) bool { return isSpace(c) || c == '"' || c == '\'' || c == '<' || c == '>' }

// suspicion returns the minimum length that a random word beside this word must have to be
// redacted; 0 if this word does not suggest a secret.
func suspicion(word []byte) int {
	if len(word) > 12 {
		return 0
	}
	var text [12]byte
	for i, c := range word {
		text[i] = lower(c)
	}
	switch string(text[:len(word)]) {
	case "password", "passwd", "passphrase", "pwd":
		return leastPassword
	case "token", "secret", "key", "apikey", "credential", "credentials":
		return leastNeighbour
	}
	return 0
}

// connects reports whether a sentence may continue after a word, as in "password was changed to".
func connects(word []byte) bool {
	return isOneOf(word, "is", "was", "to", "of", "=", ":", "are", "set", "changed", "reset", "now", "be", "the",
		"new", "key", "->")
}

// looksSecret reports whether a word may have been generated, and is not one of
// the identifiers that are frequent in logs.
func looksSecret(word []byte, least int) bool {
	if len(word) < least || isPath(word) || bytes.ContainsAny(word, "/\\=(){}[]") || alreadyRedacted(word) {
		return false
	}
	if !random(word, least) {
		return false
	}
	digits := 0
	for _, c := range word {
		if isDigit(c) {
			digits++
		}
	}
	return digits > 0 && digits < len(word) && (mixedCase(word) || least == leastPassword) &&
		!bytes.ContainsAny(word, ":.")
}
