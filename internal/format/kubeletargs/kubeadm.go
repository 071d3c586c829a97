package kubeletargs

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/swdt-dev/swdt/internal/format/windowstext"
)

const kubeadmVariable = "KUBELET_KUBEADM_ARGS"

// ParseKubeadmFlags parses kubeadm-flags.env: the variable KUBELET_KUBEADM_ARGS, as kubeadm, a shell, PowerShell or
// cmd.exe writes it. Flags in it are --name=value, --name value, or --name for true; values can be in quotes. If a flag
// whose value is a list occurs several times, its value has the elements of all of them; any other flag has its last
// value, as for kubelet. Only an empty file has no flags: a file without the variable is an error.
func ParseKubeadmFlags(content []byte) (map[string]string, error) {
	flags, err := parseKubeadmFlags(content)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", FlagsFile, err)
	}
	return flags, nil
}

// remedy is for a file that can be decoded, but does not have kubelet's flags.
const remedy = "correct the file, or run kubeadm join again"

func parseKubeadmFlags(content []byte) (map[string]string, error) {
	text, err := windowstext.Decode(content)
	if err != nil {
		return nil, err
	}
	var flags map[string]string
	number := 0
	for line := range strings.Lines(text.Content) {
		number++
		value, ok, err := assigned(strings.TrimSpace(line))
		if !ok {
			continue // a comment, or a variable that kubelet's unit on Linux does not use either
		}
		if err == nil {
			flags, err = flagsOf(value) // the last assignment counts, as in a shell
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w: %s", number, err, remedy)
		}
	}
	if flags == nil && strings.TrimSpace(text.Content) != "" {
		return nil, fmt.Errorf("line %d: the file ends without %s, so kubelet's flags are unknown: %s", max(number, 1),
			kubeadmVariable, remedy)
	}
	return flags, nil
}

// assigned returns the value of kubeadm's variable. ok reports whether the line assigns a value to it: as NAME=value,
// which kubeadm writes and systemd reads, with export or set before it for a shell or cmd.exe, or as $env:NAME = "value"
// for PowerShell. Names of variables ignore case, as on Windows.
func assigned(line string) (value string, ok bool, err error) {
	for _, command := range []string{"export", "set"} {
		if end := strings.IndexAny(line, " \t"); end > 0 && strings.EqualFold(line[:end], command) {
			line = strings.TrimSpace(line[end:])
		}
	}
	if inner, quoted := wholly(line, '"'); quoted { // set "NAME=value"
		line = inner
	}
	name, value, found := strings.Cut(line, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	inPowerShell := strings.HasPrefix(name, "$")
	if inPowerShell {
		name = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(name, "$"), "{"), "}")
		scope, variable, _ := strings.Cut(name, ":")
		name, found = variable, found && strings.EqualFold(scope, "env")
	}
	if !found || !strings.EqualFold(name, kubeadmVariable) {
		return "", false, nil
	}
	if inPowerShell {
		value, err = fromPowerShell(value)
	} else {
		value = unquoted(value)
	}
	for _, quote := range `"'` { // quotes around all flags, in other quotes
		if inner, quoted := wholly(value, byte(quote)); quoted {
			value = inner
		}
	}
	return value, true, err
}

// wholly returns the text between a quote at the beginning of text and the only other one, at its end.
func wholly(text string, quote byte) (inner string, ok bool) {
	if len(text) < 2 || text[0] != quote || text[len(text)-1] != quote {
		return "", false
	}
	inner = text[1 : len(text)-1]
	return inner, strings.IndexByte(inner, quote) < 0
}

// between returns the text between the quotes of a value. A comment may follow the value.
func between(value string) (inner string, ok bool) {
	if value == "" || !strings.Contains(`"'`, value[:1]) {
		return "", false
	}
	for end := 1; end < len(value); end++ {
		rest := strings.TrimSpace(value[end+1:])
		comment := strings.HasPrefix(rest, "#") && !strings.HasPrefix(value[end+1:], "#")
		if value[end] == value[0] && (rest == "" || rest == ";" || comment) {
			return value[1:end], true
		}
	}
	return "", false
}

// unquoted returns the value of an assignment without the quotes around all of it. kubeadm quotes as Go does: it
// doubles backslashes, and writes one before a quote. If the value has any other backslash, a user has written it: its
// backslashes belong to Windows paths and stay.
func unquoted(value string) string {
	inner, ok := between(value)
	switch {
	case !ok:
		return value
	case value[0] == '\'':
		return inner
	case strings.Contains(strings.NewReplacer(`\\`, "", `\"`, "").Replace(inner), `\`):
		return strings.ReplaceAll(inner, `\"`, `"`)
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(inner)
}

// fromPowerShell returns the value of a string of PowerShell.
func fromPowerShell(value string) (string, error) {
	inner, ok := between(value)
	if !ok {
		return "", fmt.Errorf("%.60q is not one string in quotes", value)
	}
	const escaped = "\x00" // a decoded text has no NUL
	quote := value[:1]
	inner = strings.ReplaceAll(inner, quote+quote, escaped)
	if quote == `"` {
		inner = strings.NewReplacer("`\"", escaped, "``", "`", "`$", "$").Replace(inner)
	}
	if strings.Contains(inner, quote) {
		return "", fmt.Errorf("%.60q is not one string in quotes", value)
	}
	return strings.ReplaceAll(inner, escaped, quote), nil
}

// split splits at spaces outside quotes, and removes the quotes. A word that begins with # begins a comment.
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
		case c == '#' && !inWord:
			return words, nil
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

// flagsOf returns the flags of a variable's value.
func flagsOf(value string) (map[string]string, error) {
	words, err := split(value)
	if err != nil {
		return nil, err
	}
	flags, stray := Flags(words)
	if stray != "" {
		return nil, fmt.Errorf("%.60q is not a flag", stray)
	}
	return flags, nil
}

// Flags returns the values of kubelet's flags in the words after its program, by the names of the flags as kubelet
// documents them. A flag without a value has the value true, and a list that is given in parts is one list. stray is
// the first word that is no flag and no value of one; "": there is none.
func Flags(words []string) (flags map[string]string, stray string) {
	flags = map[string]string{}
	for i := 0; i < len(words); i++ {
		name, dashed := strings.CutPrefix(words[i], "-")
		name, value, ok := strings.Cut(strings.TrimPrefix(name, "-"), "=")
		name = strings.ReplaceAll(name, "_", "-") // kubelet takes both
		switch {
		case !dashed || name == "":
			stray = cmp.Or(stray, words[i])
			continue
		case ok:
		case i+1 < len(words) && !isFlag(words[i+1]):
			i++
			value = words[i]
		default:
			value = "true"
		}
		if between, before := separator(name), flags[name]; between != "" && before != "" && value != "" {
			value = before + between + value
		}
		flags[name] = value
	}
	return flags, stray
}

// isFlag reports whether a word is a flag, and not a value, which may be a negative number.
func isFlag(word string) bool {
	rest, dashed := strings.CutPrefix(word, "-")
	return dashed && strings.Trim(rest, "0123456789.") != ""
}
