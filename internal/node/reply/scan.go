package reply

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// scan checks an encoded message without decoding it. It bounds the number of
// elements, since an element that takes two bytes on the wire takes hundreds in
// memory. It refuses a field that the contract does not have: swdt and the agent are
// of the same build.
func scan(data []byte, message protoreflect.MessageDescriptor) *Error {
	fields := message.Fields()
	var counts map[protoreflect.FieldNumber]int
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return &Error{Field: string(message.Name()), Problem: "is not a valid message"}
		}
		size := protowire.ConsumeFieldValue(number, wire, data[n:])
		if size < 0 {
			return &Error{Field: string(message.Name()), Problem: "is not a valid message"}
		}
		value := data[n : n+size]
		data = data[n+size:]
		field := fields.ByNumber(number)
		if field == nil {
			return &Error{Field: fmt.Sprintf("%s.%d", message.Name(), number),
				Problem: "is a field that this swdt's agent does not have"}
		}
		if field.IsList() {
			if counts == nil {
				counts = map[protoreflect.FieldNumber]int{}
			}
			counts[number]++
			if most := ruleOf(field).most; counts[number] > most {
				return &Error{Field: fieldName(field), Problem: fmt.Sprintf("has more than %d elements", most)}
			}
		}
		if refused := scanNested(value, wire, field); refused != nil {
			return refused
		}
	}
	return nil
}

func scanNested(value []byte, wire protowire.Type, field protoreflect.FieldDescriptor) *Error {
	if field.Kind() != protoreflect.MessageKind {
		return nil
	}
	if wire != protowire.BytesType {
		return &Error{Field: fieldName(field), Problem: "is not a valid message"}
	}
	nested, n := protowire.ConsumeBytes(value)
	if n < 0 {
		return &Error{Field: fieldName(field), Problem: "is not a valid message"}
	}
	return scan(nested, field.Message())
}

// fieldName returns a name such as HashReply.sha256.
func fieldName(field protoreflect.FieldDescriptor) string {
	return string(field.Parent().Name()) + "." + string(field.Name())
}
