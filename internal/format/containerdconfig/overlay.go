package containerdconfig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/pelletier/go-toml/v2"
)

// Overlay merges tables into a whole configuration. All other values are unchanged; comments and
// order are lost. The result begins with the text `header`, whose lines must begin with #.
func Overlay(config []byte, over map[string]any, header string) ([]byte, error) {
	var merged map[string]any
	if err := read(config, &merged); err != nil {
		return nil, fmt.Errorf("read containerd's configuration: %w", err)
	}
	if merged == nil {
		merged = map[string]any{}
	}
	if err := mergeTable(merged, over, nil); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString(header)
	if err := toml.NewEncoder(&out).SetIndentTables(true).Encode(merged); err != nil {
		return nil, fmt.Errorf("write containerd's configuration: %w", err)
	}
	return out.Bytes(), nil
}

// Text returns the text value of a key. It returns "" if the key has no text value, or if the
// configuration is not TOML.
func Text(config []byte, path ...string) string {
	var value any
	table := map[string]any{}
	if read(config, &table) != nil {
		return ""
	}
	value = table
	for _, key := range path {
		within, _ := value.(map[string]any)
		value = within[key]
	}
	text, _ := value.(string)
	return text
}

// Differences returns the differing values of two configurations, one line each. If either is not
// TOML and the texts differ, Differences returns one line that reports this.
func Differences(before, after []byte) []string {
	var left, right map[string]any
	if read(before, &left) != nil || read(after, &right) != nil {
		if bytes.Equal(before, after) {
			return nil
		}
		return []string{"one of the two configurations is not TOML"}
	}
	return differences(nil, left, right, nil)
}

func differences(found []string, left, right map[string]any, path []string) []string {
	keys := slices.Sorted(maps.Keys(left))
	for key := range right {
		if _, both := left[key]; !both {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		here := append(path[:len(path):len(path)], key)
		was, wasTable := left[key].(map[string]any)
		is, isTable := right[key].(map[string]any)
		switch {
		case wasTable && isTable:
			found = differences(found, was, is, here)
		case !reflect.DeepEqual(left[key], right[key]):
			found = append(found, fmt.Sprintf("%s: %s → %s", dotted(here), formatted(left[key]), formatted(right[key])))
		}
	}
	return found
}

func formatted(value any) string {
	switch value.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		return "a table"
	}
	text, err := json.Marshal(value)
	if err != nil { // JSON cannot encode every value; for example, it has no infinity
		return fmt.Sprint(value)
	}
	return string(text)
}
