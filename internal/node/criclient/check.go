package criclient

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Bounds on a runtime's reply. Real replies are far smaller: a node runs about a hundred
// pods.
const (
	// mostParts bounds the number of messages inside a reply, since a message that takes
	// two bytes on the wire takes hundreds in memory.
	mostParts = 1 << 18
	// mostListed bounds the pods, containers or images that a reply lists.
	mostListed = 1 << 14
	// longestName bounds an ID, a name, or a label that the kubelet sets, in bytes.
	longestName = 512
	// longestText bounds any other text, such as an annotation, in bytes.
	longestText = 256 << 10
	// longestInfo bounds the additional entries of a verbose answer, in bytes.
	longestInfo = 4 << 20
)

// RefusedError is returned for a reply that no container runtime sends.
type RefusedError struct {
	Method  string // ListContainerStats
	Field   string // ContainerAttributes.id
	Problem string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("refuse the container runtime's answer to %s: %s %s; nothing of it was used", e.Method,
		e.Field, e.Problem)
}

// incoming is a reply before it is decoded and checked.
type incoming struct {
	message proto.Message
	refused *RefusedError
}

// callChecked makes a call whose reply is checked before it is used.
func callChecked(ctx context.Context, method string, request, to any, c *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption) error {
	in := &incoming{message: to.(proto.Message)}
	if err := invoke(ctx, method, request, in, c, options...); err != nil {
		return err
	}
	if in.refused == nil {
		return nil
	}
	proto.Reset(in.message)
	in.refused.Method = method[strings.LastIndexByte(method, '/')+1:]
	return in.refused
}

// Decode implements checked.Incoming.
func (in *incoming) Decode(data []byte) { in.refused = decode(data, in.message) }

// decode decodes and checks a message from a runtime.
func decode(data []byte, message proto.Message) *RefusedError {
	reflected := message.ProtoReflect()
	name := string(reflected.Descriptor().Name())
	parts := 0
	if problem := count(data, reflected.Descriptor(), &parts); problem != "" {
		return &RefusedError{Field: name, Problem: problem}
	}
	if err := proto.Unmarshal(data, message); err != nil {
		return &RefusedError{Field: name, Problem: "is not a valid message"}
	}
	if refused := checkMessage(reflected); refused != nil {
		return refused
	}
	return checkListed(reflected)
}

// count counts the messages and list elements of an encoded message without decoding it. It skips
// fields that this swdt does not know, which a newer runtime may send.
func count(data []byte, message protoreflect.MessageDescriptor, parts *int) (problem string) {
	for len(data) > 0 {
		number, wire, n := protowire.ConsumeTag(data)
		if n < 0 {
			return "is not a valid message"
		}
		size := protowire.ConsumeFieldValue(number, wire, data[n:])
		if size < 0 {
			return "is not a valid message"
		}
		value := data[n : n+size]
		data = data[n+size:]
		field := message.Fields().ByNumber(number)
		if field == nil || wire != protowire.BytesType || !field.IsList() && field.Message() == nil {
			continue
		}
		if *parts++; *parts > mostParts {
			return fmt.Sprintf("has more than %d parts", mostParts)
		}
		if field.Message() == nil {
			continue
		}
		nested, _ := protowire.ConsumeBytes(value)
		if problem := count(nested, field.Message(), parts); problem != "" {
			return problem
		}
	}
	return ""
}

// checkMessage returns an error if a text in the message exceeds its bound.
func checkMessage(m protoreflect.Message) (refused *RefusedError) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		refused = checkField(field, value)
		return refused == nil
	})
	return refused
}

func checkField(field protoreflect.FieldDescriptor, value protoreflect.Value) (refused *RefusedError) {
	switch {
	case field.IsMap():
		value.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
			refused = checkEntry(field, key, value)
			return refused == nil
		})
	case field.IsList():
		for i := range value.List().Len() {
			if refused = checkValue(field, value.List().Get(i)); refused != nil {
				break
			}
		}
	default:
		refused = checkValue(field, value)
	}
	return refused
}

// checkEntry checks the length of a label, an annotation, or an additional entry of a
// verbose answer.
func checkEntry(field protoreflect.FieldDescriptor, key protoreflect.MapKey, value protoreflect.Value) *RefusedError {
	most := longestText
	switch {
	case field.Name() == "info":
		most = longestInfo
	case field.Name() == "labels" && strings.HasPrefix(key.String(), "io.kubernetes."):
		most = longestName
	}
	if len(key.String()) > longestText {
		return tooLong(field, len(key.String()), longestText)
	}
	if field.MapValue().Message() != nil {
		return checkMessage(value.Message())
	}
	if n := len(value.String()); n > most {
		return tooLong(field, n, most)
	}
	return nil
}

func checkValue(field protoreflect.FieldDescriptor, value protoreflect.Value) *RefusedError {
	if field.Message() != nil {
		return checkMessage(value.Message())
	}
	if field.Kind() != protoreflect.StringKind {
		return nil
	}
	most := longestText
	switch field.Name() {
	case "id", "name", "namespace", "uid":
		most = longestName
	}
	if n := len(value.String()); n > most {
		return tooLong(field, n, most)
	}
	return nil
}

func tooLong(field protoreflect.FieldDescriptor, n, most int) *RefusedError {
	return &RefusedError{Field: fieldName(field), Problem: fmt.Sprintf("is %d bytes long, more than %d", n, most)}
}

func fieldName(field protoreflect.FieldDescriptor) string {
	return string(field.Parent().Name()) + "." + string(field.Name())
}

// checkListed returns an error if a reply lists too many elements or an ID twice.
func checkListed(m protoreflect.Message) *RefusedError {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if !field.IsList() || field.Message() == nil {
			continue
		}
		list := m.Get(field).List()
		if list.Len() > mostListed {
			return &RefusedError{Field: fieldName(field), Problem: fmt.Sprintf("has %d elements, more than %d",
				list.Len(), mostListed)}
		}
		seen := make(map[string]struct{}, list.Len())
		for i := range list.Len() {
			id, ok := idOf(list.Get(i).Message())
			if !ok {
				break
			}
			if _, twice := seen[id]; twice {
				return &RefusedError{Field: fieldName(field), Problem: fmt.Sprintf("has the ID %.80q twice", id)}
			}
			seen[id] = struct{}{}
		}
	}
	return nil
}

// idOf returns the ID of a pod, of a container, or of the subject of statistics; false
// for any other message.
func idOf(m protoreflect.Message) (id string, ok bool) {
	switch of := m.Interface().(type) {
	case *runtimev1.PodSandbox:
		return of.GetId(), true
	case *runtimev1.Container:
		return of.GetId(), true
	case *runtimev1.ContainerStats:
		return of.GetAttributes().GetId(), true
	case *runtimev1.PodSandboxStats:
		return of.GetAttributes().GetId(), true
	}
	return "", false
}
