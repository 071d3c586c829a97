package agent

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/redact"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

// redactor returns the redactor that the caller requested for the reply, or nil
// for none.
func redactor(ctx context.Context) (*redact.Redactor, error) {
	wanted, _ := metadata.FromIncomingContext(ctx)
	if len(wanted.Get(redact.Metadata)) == 0 {
		return nil, nil
	}
	r, err := redact.New(wanted.Get(redact.MetadataPatterns))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return r, nil
}

// redactUnary redacts the secrets in a reply or in its error.
func redactUnary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	r, err := redactor(ctx)
	if err != nil {
		return nil, err
	}
	reply, err := handle(ctx, request)
	if r == nil {
		return reply, err
	}
	if err != nil {
		return nil, &redactedError{r.String(err.Error()), err}
	}
	clean(r, reply)
	return reply, nil
}

// redactStream is redactUnary for streamed replies.
func redactStream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	r, err := redactor(stream.Context())
	if err != nil {
		return err
	}
	if r == nil {
		return handle(server, stream)
	}
	if info.FullMethod == agentv1.Network_Connect_FullMethodName {
		return fmt.Errorf("connect to a port: %w: bytes that are only relayed cannot be redacted", fault.ErrPermission)
	}
	if relay, ok := server.(*networkService); ok { // Pipe is its only other stream
		if err := relay.redactedPipe(&pipeStream{ServerStream: stream}, r); err != nil {
			return &redactedError{r.String(err.Error()), err}
		}
		return nil
	}
	cleaned := &cleanStream{ServerStream: stream, redactor: r}
	if err := handle(server, cleaned); err != nil {
		return &redactedError{r.String(err.Error()), err}
	}
	return cleaned.end()
}

// redactedError has a redacted text and unwraps to the original error.
type redactedError struct {
	text string
	err  error
}

func (e *redactedError) Error() string { return e.text }
func (e *redactedError) Unwrap() error { return e.err }

// cleanStream redacts the bytes of a file or of a program's output as one text, so that it also
// finds a secret that is split between two messages.
type cleanStream struct {
	grpc.ServerStream
	redactor *redact.Redactor
	midway   bool
	data     *redact.Stream // the bytes of a file, or of a program's stdout
	stderr   *redact.Stream
	last     func(data []byte) any // returns a message with the remaining bytes
}

func (s *cleanStream) RecvMsg(m any) error {
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	if read, ok := m.(*agentv1.ReadRequest); ok {
		s.midway = read.GetOffset() > 0
	}
	return nil
}

func (s *cleanStream) SendMsg(m any) error {
	switch m := m.(type) {
	case *agentv1.RunReply:
		m.Stdout, m.Stderr = s.next(&s.data, m.GetStdout()), s.next(&s.stderr, m.GetStderr())
		if m.GetExited() {
			m.Stdout, m.Stderr = append(m.Stdout, rest(s.data)...), append(m.Stderr, rest(s.stderr)...)
			break
		}
		if len(m.GetStdout())+len(m.GetStderr()) == 0 {
			return nil
		}
	case *agentv1.ReadReply:
		s.last = func(data []byte) any { return &agentv1.ReadReply{Data: data} }
		if m.Data = s.next(&s.data, m.GetData()); len(m.GetData()) == 0 {
			return nil // all bytes are held back until more arrive; an empty message would have no meaning
		}
	case *agentv1.StacksReply:
		s.last = func(data []byte) any { return &agentv1.StacksReply{Data: data} }
		if m.GetCut() { // all bytes must be sent before it
			if err := s.end(); err != nil {
				return err
			}
		}
		if m.Data = s.next(&s.data, m.GetData()); len(m.GetData()) == 0 && !m.GetCut() {
			return nil
		}
	case *agentv1.TailReply:
		s.last = func(data []byte) any { return &agentv1.TailReply{Data: data} }
		if m.GetEvent() != agentv1.TailEvent_TAIL_EVENT_NONE { // all bytes must be sent before the event
			if err := s.end(); err != nil {
				return err
			}
		}
		m.Data = s.next(&s.data, m.GetData())
	default:
		clean(s.redactor, m)
	}
	return s.ServerStream.SendMsg(m)
}

// next returns the redacted bytes as a copy, since the receiver may keep a message after next has
// redacted another one.
func (s *cleanStream) next(stream **redact.Stream, data []byte) []byte {
	if len(data) == 0 {
		return nil
	}
	if *stream == nil {
		*stream = s.redactor.Stream()
		if s.midway {
			(*stream).Midway()
		}
	}
	return append([]byte(nil), (*stream).Next(data)...)
}

func rest(stream *redact.Stream) []byte {
	if stream == nil {
		return nil
	}
	return stream.End()
}

// end sends the bytes that the redactor has held back.
func (s *cleanStream) end() error {
	left := rest(s.data)
	if s.last == nil || len(left) == 0 {
		return nil
	}
	return s.ServerStream.SendMsg(s.last(append([]byte(nil), left...)))
}

// clean redacts the texts in a message. It does not change a list of files.
func clean(r *redact.Redactor, message any) {
	switch m := message.(type) {
	case *agentv1.CRIStatusReply:
		m.Status = r.Message(m.GetStatus())
	case *agentv1.ListFilesReply: // unchanged, since callers request files by these names
	case proto.Message:
		cleanFields(r, m.ProtoReflect())
	}
}

func cleanFields(r *redact.Redactor, m protoreflect.Message) {
	name := nameOf(m)
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
		case field.IsList() && field.Kind() == protoreflect.StringKind && name == "":
			cleanLines(r, value.List())
		case field.IsList():
			list := value.List()
			for i := range list.Len() {
				if v, ok := cleaned(r, name, field, list.Get(i)); ok {
					list.Set(i, v)
				}
			}
		default:
			if v, ok := cleaned(r, name, field, value); ok {
				m.Set(field, v)
			}
		}
		return true
	})
}

// cleanLines redacts a list of texts together, since they may be lines of one text, such as a
// log: a private key has many lines.
func cleanLines(r *redact.Redactor, list protoreflect.List) {
	lines := make([]string, list.Len())
	for i := range lines {
		lines[i] = list.Get(i).String()
	}
	together := strings.Split(r.String(strings.Join(lines, "\n")), "\n")
	for i, line := range lines {
		if len(together) == len(lines) {
			line = together[i]
		}
		list.Set(i, protoreflect.ValueOfString(r.String(line)))
	}
}

// nameOf returns the name in a message that describes an environment variable or registry value.
// The name determines whether the value is secret. For any other message it returns "".
func nameOf(m protoreflect.Message) string {
	fields := m.Descriptor().Fields()
	named := fields.ByName("name")
	if named == nil || fields.ByName("value") == nil && fields.ByName("binary") == nil {
		return ""
	}
	return m.Get(named).String()
}

// cleaned returns a text or bytes without secrets. If the value is a message, cleaned redacts the
// message in place and returns false. It also returns false for a value of any other kind.
func cleaned(r *redact.Redactor, name string, field protoreflect.FieldDescriptor, value protoreflect.Value) (
	protoreflect.Value, bool) {
	isName := field.Name() == "name" || field.Name() == "type"
	switch field.Kind() {
	case protoreflect.MessageKind:
		cleanFields(r, value.Message())
	case protoreflect.StringKind:
		if name != "" && !isName {
			return protoreflect.ValueOfString(string(r.Named(name, []byte(value.String())))), true
		}
		return protoreflect.ValueOfString(r.String(value.String())), true
	case protoreflect.BytesKind:
		if name != "" {
			return protoreflect.ValueOfBytes(r.Named(name, value.Bytes())), true
		}
		return protoreflect.ValueOfBytes(r.Bytes(value.Bytes())), true
	}
	return protoreflect.Value{}, false
}
