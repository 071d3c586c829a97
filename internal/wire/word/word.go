// Package word makes a word for each value of the contract's enums from the name of the value.
//
// JSON, journals and the simulated Windows hold words, and the RPCs hold enums. The word of
// SERVICE_STATE_START_PENDING is "startPending", on both sides and without a table. So the name of
// a value in the .proto files is part of the output of swdt; a test lists all words.
package word

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Of returns the word of a value. The word of 0, which is an unknown or unset value, is
// empty, and so is the word of a number that the enum does not have.
func Of(value protoreflect.Enum) string {
	if value.Number() == 0 {
		return ""
	}
	values := value.Descriptor().Values()
	named := values.ByNumber(value.Number())
	if named == nil {
		return ""
	}
	return camel(strings.TrimPrefix(string(named.Name()), prefix(values)))
}

// Value returns the value of E that has the given word, or 0 if no value of E has it.
func Value[E interface {
	~int32
	protoreflect.Enum
}](word string) E {
	var zero E
	return E(number(zero.Descriptor().Values(), word))
}

func number(values protoreflect.EnumValueDescriptors, word string) protoreflect.EnumNumber {
	for i := 1; i < values.Len(); i++ {
		if v := values.Get(i); camel(strings.TrimPrefix(string(v.Name()), prefix(values))) == word {
			return v.Number()
		}
	}
	return 0
}

// prefix returns the part that the names of all values of an enum have in common. The name of the
// first value consists of this prefix and one word, as in SERVICE_STATE_UNKNOWN.
func prefix(values protoreflect.EnumValueDescriptors) string {
	name := string(values.Get(0).Name())
	return name[:strings.LastIndexByte(name, '_')+1]
}

// camel turns START_PENDING into startPending.
func camel(name string) string {
	var word strings.Builder
	for i, part := range strings.Split(name, "_") {
		if i == 0 || part == "" {
			word.WriteString(strings.ToLower(part))
			continue
		}
		word.WriteString(part[:1] + strings.ToLower(part[1:]))
	}
	return word.String()
}
