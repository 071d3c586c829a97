package kubeletargs

import (
	"fmt"
	"strconv"
	"strings"
)

const kubeadmVariable = "KUBELET_KUBEADM_ARGS"

// ParseKubeadmFlags parses kubeadm-flags.env: one variable, with a value that
// kubeadm quotes as Go does. Flags in it are --name=value, --name value, or
// --name for true; values can be in quotes. An empty file has no flags.
func ParseKubeadmFlags(content []byte) (map[string]string, error) {
	flags := map[string]string{}
	text := strings.TrimPrefix(string(content), "\ufeff")
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.TrimSpace(name) != kubeadmVariable {
			continue // a comment, or a variable that kubelet's unit on Linux does not use either
		}
		words, err := split(unquoted(strings.TrimSpace(value)))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w: correct the file, or run kubeadm join again", FlagsFile, err)
		}
		if err := collect(flags, words); err != nil {
			return nil, fmt.Errorf("read %s: %w: correct the file, or run kubeadm join again", FlagsFile, err)
		}
	}
	return flags, nil
}

// unquoted returns the variable's value. If the value is not quoted as Go quotes a string, a user
// has written the value: its backslashes belong to Windows paths and stay.
func unquoted(value string) string {
	if plain, err := strconv.Unquote(value); err == nil {
		return plain
	}
	if len(value) >= 2 && value[0] == '"' && value[len(value)-1] == '"' {
		return value[1 : len(value)-1]
	}
	return value
}

// split splits at spaces outside quotes, and removes the quotes.
func split(text string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	inWord := false
	for _, c := range text {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(c)
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == ' ' || c == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(c)
			inWord = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("%c is not closed", quote)
	}
	if inWord {
		words = append(words, word.String())
	}
	return words, nil
}

func collect(flags map[string]string, words []string) error {
	for i := 0; i < len(words); i++ {
		name, dashed := strings.CutPrefix(words[i], "-")
		name = strings.TrimPrefix(name, "-")
		if !dashed || name == "" {
			return fmt.Errorf("%.60q is not a flag", words[i])
		}
		name, value, ok := strings.Cut(name, "=")
		switch {
		case ok:
		case i+1 < len(words) && !strings.HasPrefix(words[i+1], "-"):
			i++
			value = words[i]
		default:
			value = "true"
		}
		flags[name] = value
	}
	return nil
}
