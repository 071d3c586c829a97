package redact

import "google.golang.org/protobuf/encoding/protowire"

// deepest limits the nesting of messages that are parsed.
const deepest = 32

// Message redacts every text in a protobuf message of unknown type. If the message cannot be
// parsed, Message returns nil, which is an empty message.
func (r *Redactor) Message(message []byte) []byte {
	out, ok := r.message(message, deepest)
	if !ok {
		return nil
	}
	return out
}

func (r *Redactor) message(message []byte, depth int) (out []byte, ok bool) {
	name := ""
	for first := true; len(message) > 0; first = false {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 || kind == protowire.StartGroupType || kind == protowire.EndGroupType {
			return nil, false
		}
		length := protowire.ConsumeFieldValue(number, kind, message[n:])
		if length < 0 {
			return nil, false
		}
		field := message[:n+length]
		message = message[n+length:]
		if kind != protowire.BytesType {
			out = append(out, field...)
			continue
		}
		value, _ := protowire.ConsumeBytes(field[n:])
		// The message may be an entry of a map or an environment variable: field 1 is a name,
		// field 2 is its value.
		if number == 1 && first && len(value) <= maxName {
			name = string(value)
		}
		clean := r.field(value, depth)
		if number == 2 && name != "" {
			clean = r.namedField(name, value, clean)
		}
		out = protowire.AppendBytes(protowire.AppendTag(out, number, kind), clean)
	}
	return out, true
}

// field redacts bytes that are a message or a text. If they could be either, it treats them as a
// message if the message contains a secret. If it does not, field treats them as a text.
func (r *Redactor) field(value []byte, depth int) []byte {
	if depth > 0 && len(value) > 0 {
		if inner, ok := r.message(value, depth-1); ok && (!isText(value) || string(inner) != string(value)) {
			return inner
		}
	}
	return r.Bytes(value)
}

func (r *Redactor) namedField(name string, value, clean []byte) []byte {
	if kindOf(name) == plain || !isText(value) {
		return clean
	}
	return r.Named(name, value)
}

// isText reports whether a value has no control characters except tabs and line ends.
func isText(value []byte) bool {
	for _, c := range value {
		if c < ' ' && !isSpace(c) || c == 0x7f {
			return false
		}
	}
	return true
}
