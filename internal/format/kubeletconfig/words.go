package kubeletconfig

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// describe returns the kind of a value, without its content.
func describe(value any) string {
	switch value.(type) {
	case bool:
		return "true or false"
	case string:
		return "a text"
	case []any:
		return "a list"
	case map[string]any:
		return "a mapping"
	}
	return "a number"
}

// wanted returns the kind of value that kubelet decodes into a type.
func wanted(t reflect.Type) string {
	if t == reflect.TypeFor[metav1.Duration]() {
		return "a duration such as 30s"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false without quotes"
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint32:
		return "a whole number without quotes, in the range of " + t.Kind().String()
	case reflect.Float32, reflect.Float64:
		return "a number without quotes"
	case reflect.String:
		return "a text, in quotes if it looks like a number or like true"
	case reflect.Map:
		return "a mapping of names to values"
	case reflect.Slice:
		return "a list"
	}
	return "what the field's documentation shows"
}
