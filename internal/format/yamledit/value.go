package yamledit

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// scalar returns a value as it is written behind a key, on one line.
func scalar(value any) (string, error) {
	text, isText := value.(string)
	if !isText {
		return inFlow(value, false)
	}
	plain, err := yaml.Marshal(text)
	if err != nil {
		return "", err
	}
	written := strings.TrimSuffix(string(plain), "\n")
	if strings.Contains(written, "\n") {
		return inFlow(value, true)
	}
	return written, nil
}

// inFlow returns a value as it is written between brackets. quoted: texts have quotes, as in JSON.
func inFlow(value any, quoted bool) (string, error) {
	var parts []string
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			part, err := inFlow(v[name], quoted)
			if err != nil {
				return "", err
			}
			key, err := inFlow(name, quoted)
			if err != nil {
				return "", err
			}
			parts = append(parts, key+": "+part)
		}
		return "{" + strings.Join(parts, ", ") + "}", nil
	case []any:
		for _, item := range v {
			part, err := inFlow(item, quoted)
			if err != nil {
				return "", err
			}
			parts = append(parts, part)
		}
		return "[" + strings.Join(parts, ", ") + "]", nil
	case string:
		if !quoted && needsNoQuotes(v) {
			return v, nil
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSuffix(out.String(), "\n"), err
}

// needsNoQuotes reports whether every parser of YAML reads a word as a text, also between brackets.
func needsNoQuotes(word string) bool {
	decoded := any(nil)
	return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/-]*$`).MatchString(word) &&
		!slices.Contains([]string{"y", "n", "yes", "no", "on", "off"}, strings.ToLower(word)) &&
		yaml.Unmarshal([]byte(word), &decoded) == nil && decoded == word
}
