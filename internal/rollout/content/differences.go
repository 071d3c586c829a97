package content

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	fleetv1 "github.com/swdt-dev/swdt/api/fleet/v1alpha1"
)

// Differences returns the fields in which two contents differ, such as provisioners[0].sha256, in a fixed order. A list
// that one of them lacks, or an element of it, is one field. Equal contents have none.
func Differences(a, b fleetv1.Content) ([]string, error) {
	var values [2]any
	for i, c := range []fleetv1.Content{a, b} {
		text, err := json.Marshal(c)
		if err == nil {
			err = json.Unmarshal(text, &values[i])
		}
		if err != nil {
			return nil, fmt.Errorf("compare contents: %w", err)
		}
	}
	return differences("", values[0], values[1]), nil
}

// differences compares two values of JSON, which are the field at path.
func differences(path string, a, b any) (all []string) {
	if objectA, objectB, ok := both[map[string]any](a, b); ok {
		keys := maps.Clone(objectA)
		maps.Copy(keys, objectB)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			field := key
			if path != "" {
				field = path + "." + key
			}
			all = append(all, differences(field, objectA[key], objectB[key])...)
		}
		return all
	}
	if listA, listB, ok := both[[]any](a, b); ok {
		for i := range max(len(listA), len(listB)) {
			all = append(all, differences(fmt.Sprintf("%s[%d]", path, i), at(listA, i), at(listB, i))...)
		}
		return all
	}
	if !reflect.DeepEqual(a, b) {
		return []string{path}
	}
	return nil
}

func both[T any](a, b any) (asA, asB T, ok bool) {
	asA, okA := a.(T)
	asB, okB := b.(T)
	return asA, asB, okA && okB
}

func at(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return nil
}
