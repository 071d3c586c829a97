package redact

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

const plantedSecret = "hunter2S3cr3tPass99"

// node is a field of a message that a test made, with the expected result.
type node struct {
	number protowire.Number
	kind   protowire.Type
	raw    []byte // of a number
	text   string // of bytes
	secret bool   // the text has the planted secret
	inside []node // of a message
}

func (n node) bytes() []byte {
	if n.inside != nil {
		return encode(n.inside)
	}
	return []byte(n.text)
}

func encode(nodes []node) (message []byte) {
	for _, n := range nodes {
		message = protowire.AppendTag(message, n.number, n.kind)
		if n.kind == protowire.BytesType {
			message = protowire.AppendBytes(message, n.bytes())
		} else {
			message = append(message, n.raw...)
		}
	}
	return message
}

// entry returns an environment variable, or an entry of a map.
func entry(name, value string, secret bool) []node {
	return []node{{number: 1, kind: protowire.BytesType, text: name},
		{number: 2, kind: protowire.BytesType, text: value, secret: secret}}
}

// messageMaker makes messages from a fuzzer's bytes.
type messageMaker struct{ data []byte }

func (m *messageMaker) next() byte {
	if len(m.data) == 0 {
		return 0
	}
	c := m.data[0]
	m.data = m.data[1:]
	return c
}

func (m *messageMaker) message(depth int) []node {
	nodes := []node{}
	for len(m.data) > 0 && len(nodes) < 50 {
		kind := m.next() % 9
		if kind == 8 && depth > 0 {
			break
		}
		nodes = append(nodes, m.field(kind, depth))
	}
	return nodes
}

func (m *messageMaker) field(kind byte, depth int) node {
	harmless := []string{
		"", "web", `C:\k\kubelet.exe --v=4`, "registry.k8s.io/pause:3.10", `{"image":"x","n":1}`,
		"two\nlines, of which neither is a secret's", strings.Repeat("word ", 30),
		"sha256:ee6521f290b2168b6e0935a181d4cff9be1ac3f505666ef0e3c98fae8199917a",
	}
	secrets := []string{
		"password=" + plantedSecret, `{"token":"` + plantedSecret + `","image":"x"}`, "https://u:" + plantedSecret +
			"@h/x", "A_TOKEN=" + plantedSecret,
		"x --password " + plantedSecret + " -v", "first\nAuthorization: Bearer " + plantedSecret + "\nlast",
		"Server=db;Password=" + plantedSecret + ";Encrypt=True",
	}
	n := node{number: []protowire.Number{3, 4, 5, 7, 15, 16, 1000}[m.next()%7], kind: protowire.BytesType}
	switch kind {
	case 0:
		n.kind, n.raw = protowire.VarintType, protowire.AppendVarint(nil, uint64(m.next())<<(m.next()%57))
	case 1:
		n.kind, n.raw = protowire.Fixed64Type, bytes.Repeat([]byte{m.next()}, 8)
	case 2, 3:
		n.text = harmless[int(m.next())%len(harmless)]
	case 4:
		n.text, n.secret = secrets[int(m.next())%len(secrets)], true
	case 5:
		n.inside = entry([]string{"DB_PASSWORD", "GITHUB_TOKEN", "client-secret"}[m.next()%3], plantedSecret, true)
	case 6:
		n.inside = entry([]string{"Path", "io.kubernetes.pod.name", "auth"}[m.next()%3],
			harmless[int(m.next())%len(harmless)], false)
	case 7:
		if depth < 6 {
			n.inside = m.message(depth + 1)
		}
	}
	return n
}

// FuzzMessage redacts generated messages, with secrets in some of their texts: no secret survives, everything else is
// unchanged. Bytes that are not a message become empty.
func FuzzMessage(f *testing.F) {
	f.Add([]byte{4, 0, 0, 4, 1, 1, 7, 2, 5, 0, 0, 6, 3, 2, 2, 8, 0, 0, 9, 9})
	f.Add([]byte{7, 1, 7, 1, 7, 1, 4, 0, 5, 2, 1, 6, 8, 8, 8, 1, 0, 255})
	f.Add([]byte("\x0a\x0bDB_PASSWORD\x12\x07hunter2"))
	f.Add([]byte("\x22 password: xxxxxxxxxxxxxxxxxxxxx\x22 yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"))
	f.Add([]byte("\x13\x14"))
	r := tested(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		checkAnyMessage(t, r, data)
		nodes := (&messageMaker{data}).message(0)
		message := encode(nodes)
		got := r.Message(message)
		if bytes.Contains(got, []byte(plantedSecret)) {
			t.Fatalf("a secret is left in\n%q\nof\n%q", got, message)
		}
		checkNodes(t, nodes, got)
	})
}

// checkAnyMessage checks a property of all inputs: a message keeps its fields.
func checkAnyMessage(t *testing.T, r *Redactor, data []byte) {
	t.Helper()
	before, ok := fields(data)
	got := r.Message(data)
	if !ok {
		if got != nil {
			t.Fatalf("%q is no message, and became %q", data, got)
		}
		return
	}
	after, ok := fields(got)
	if !ok || len(after) != len(before) {
		t.Fatalf("%q\nbecame\n%q", data, got)
	}
	for i := range before {
		switch {
		case before[i].number != after[i].number:
			t.Fatalf("before[i].number is %v, want %v", before[i].number, after[i].number)
		case before[i].kind != after[i].kind:
			t.Fatalf("before[i].kind is %v, want %v", before[i].kind, after[i].kind)
		case !bytes.Equal(before[i].raw, after[i].raw):
			t.Fatal("before[i].raw differs from after[i].raw")
		}
	}
}

// fields parses a message without groups, which no message of the runtime has.
func fields(message []byte) (nodes []node, ok bool) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 || kind == protowire.StartGroupType || kind == protowire.EndGroupType {
			return nil, false
		}
		length := protowire.ConsumeFieldValue(number, kind, message[n:])
		if length < 0 {
			return nil, false
		}
		field := node{number: number, kind: kind, raw: message[n : n+length]}
		if kind == protowire.BytesType {
			text, _ := protowire.ConsumeBytes(field.raw)
			field.text, field.raw = string(text), nil
		}
		nodes = append(nodes, field)
		message = message[n+length:]
	}
	return nodes, true
}

func checkNodes(t *testing.T, want []node, message []byte) {
	t.Helper()
	got, ok := fields(message)
	if !ok || len(got) != len(want) {
		t.Fatalf("%q\nbecame\n%q", encode(want), message)
	}
	for i, n := range want {
		switch {
		case got[i].number != n.number || got[i].kind != n.kind || !bytes.Equal(got[i].raw, n.raw):
			t.Fatalf("field %d of\n%q\nis another in\n%q", i, encode(want), message)
		case n.inside != nil:
			checkNodes(t, n.inside, []byte(got[i].text))
		case n.secret && !strings.Contains(got[i].text, Mark):
			t.Fatalf("%q became %q", n.text, got[i].text)
		case !n.secret && got[i].text != n.text:
			t.Fatalf("%q, which is no secret, became %q", n.text, got[i].text)
		}
	}
}
