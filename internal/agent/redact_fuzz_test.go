package agent

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	agentv1 "github.com/swdt-dev/swdt/api/agent/v1"
	"github.com/swdt-dev/swdt/internal/format/redact"
)

const plantedSecret = "hunter2S3cr3tPass99"

// replyFiller fills messages with a fuzzer's bytes.
type replyFiller struct{ data []byte }

func (f *replyFiller) next() byte {
	if len(f.data) == 0 {
		return 0
	}
	c := f.data[0]
	f.data = f.data[1:]
	return c
}

func (f *replyFiller) text() string {
	texts := []string{
		"", "kubelet", `C:\k\kubelet.exe --v=4`, "two\nlines", "registry.k8s.io/pause:3.10", "Path", "DB_PASSWORD",
		"GITHUB_TOKEN", `{"image":"x"}`,
		"password=" + plantedSecret, `{"token":"` + plantedSecret + `","image":"x"}`, "https://u:" + plantedSecret +
			"@h/x", "x --password " + plantedSecret,
		"Authorization: Bearer " + plantedSecret, "password=" + plantedSecret + "\n",
	}
	return texts[int(f.next())%len(texts)]
}

func (f *replyFiller) fill(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		field, count := fields.Get(i), f.next()%4
		switch {
		case count == 0 || field.Kind() == protoreflect.MessageKind && depth == 0:
		case field.IsList():
			for range count {
				m.Mutable(field).List().Append(f.value(field, m.Mutable(field).List().NewElement, depth))
			}
		default:
			m.Set(field, f.value(field, func() protoreflect.Value { return m.NewField(field) }, depth))
		}
	}
}

func (f *replyFiller) value(field protoreflect.FieldDescriptor, empty func() protoreflect.Value,
	depth int) protoreflect.Value {
	switch field.Kind() {
	case protoreflect.MessageKind:
		inner := empty()
		f.fill(inner.Message(), depth-1)
		return inner
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(f.text())
	case protoreflect.BytesKind:
		if field.FullName() == "swdt.agent.v1.CRIStatusReply.status" {
			return protoreflect.ValueOfBytes(protowire.AppendString(protowire.AppendTag(nil, 3, protowire.BytesType),
				f.text()))
		}
		return protoreflect.ValueOfBytes([]byte(f.text()))
	}
	return empty()
}

// replyTypes returns the agent's reply messages, except those with bytes that are redacted as one stream.
func replyTypes() (all []protoreflect.MessageType) {
	protoregistry.GlobalFiles.RangeFilesByPackage("swdt.agent.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				output, err := protoregistry.GlobalTypes.FindMessageByName(methods.Get(j).Output().FullName())
				if err != nil {
					continue
				}
				switch output.Zero().Interface().(type) {
				case *agentv1.ReadReply, *agentv1.RunReply, *agentv1.TailReply, *agentv1.PipeReply:
				default:
					all = append(all, output)
				}
			}
		}
		return true
	})
	return all
}

// FuzzClean redacts every reply of the agent, with secrets in some of its texts: no secret survives, and all other
// text is unchanged.
func FuzzClean(f *testing.F) {
	types := replyTypes()
	for i := range types {
		f.Add(uint(i), []byte(strings.Repeat("\x01\x09\x02\x06\x0a\x03\x02\x07\x01\x0c", 20)))
	}
	r, err := redact.New(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, kind uint, data []byte) {
		message := types[kind%uint(len(types))].New()
		(&replyFiller{data}).fill(message, 4)
		before := proto.Clone(message.Interface())
		clean(r, message.Interface())
		if _, paths := message.Interface().(*agentv1.ListFilesReply); paths {
			if !proto.Equal(before, message.Interface()) {
				t.Fatalf("files are asked for by these names:\n%v\nbecame\n%v", before, message.Interface())
			}
			return
		}
		checkCleaned(t, before.ProtoReflect(), message)
	})
}

// A private key covers many lines of a log, each a text of its own.
func TestCleanReadsALogsLinesTogether(t *testing.T) {
	r, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	const body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
	outcome := &agentv1.SwapOutcome{Components: []*agentv1.ComponentOutcome{
		{LogLines: []string{"first", "-----BEGIN PRIVATE KEY-----", body, "-----END PRIVATE KEY-----", "last"}}}}
	clean(r, outcome)
	lines := outcome.GetComponents()[0].GetLogLines()
	switch {
	case len(lines) != 5:
		t.Errorf("lines has %d elements, want 5: %v", len(lines), lines)
	case strings.Contains(strings.Join(lines, ""), body):
		t.Errorf("strings.Join(lines, \"\") contains %q:\n%s", body, strings.Join(lines, ""))
	case lines[0] != "first":
		t.Errorf("lines[0] is %q, want %q", lines[0], "first")
	case lines[4] != "last":
		t.Errorf("lines[4] is %q, want %q", lines[4], "last")
	}
}

func checkCleaned(t *testing.T, before, after protoreflect.Message) {
	t.Helper()
	name := nameOf(before)
	fields := before.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.IsMap() {
			t.Fatalf("%s: maps are not redacted", field.FullName())
		}
		if before.Has(field) != after.Has(field) {
			t.Fatalf("%s: %v became %v", field.FullName(), before.Get(field), after.Get(field))
		}
		if !field.IsList() {
			checkCleanedValue(t, name, field, before.Get(field), after.Get(field))
			continue
		}
		if before.Get(field).List().Len() != after.Get(field).List().Len() {
			t.Fatalf("%s: %v became %v", field.FullName(), before.Get(field), after.Get(field))
		}
		for j := range before.Get(field).List().Len() {
			checkCleanedValue(t, name, field, before.Get(field).List().Get(j), after.Get(field).List().Get(j))
		}
	}
}

func checkCleanedValue(t *testing.T, name string, field protoreflect.FieldDescriptor, before,
	after protoreflect.Value) {
	t.Helper()
	var was, is string
	switch field.Kind() {
	case protoreflect.MessageKind:
		if before.Message().IsValid() {
			checkCleaned(t, before.Message(), after.Message())
		}
		return
	case protoreflect.StringKind:
		was, is = before.String(), after.String()
	case protoreflect.BytesKind:
		was, is = string(before.Bytes()), string(after.Bytes())
	default:
		if !before.Equal(after) {
			t.Fatalf("%s: %v became %v", field.FullName(), before, after)
		}
		return
	}
	secret := strings.Contains(was, plantedSecret)
	named := name != "" && field.Name() != "name" && redact.Secret(name, was)
	switch {
	case strings.Contains(is, plantedSecret), secret && !strings.Contains(is, redact.Mark):
		t.Fatalf("%s: %q became %q", field.FullName(), was, is)
	case !secret && !named && is != was:
		t.Fatalf("%s: %q, which is no secret, became %q", field.FullName(), was, is)
	}
}
