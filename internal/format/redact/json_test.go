package redact

import (
	"bytes"
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// texts returns values for documents. A quote inside one is balanced.
func texts() []string {
	return []string{
		"", "x", "hunter2", "a b", `C:\k`, "two\nlines", "correct horse", "A_TOKEN=x y", `B_PASSWORD="x y"`,
		"--password", "--token=abc",
		"Bearer Zx81mQ0pL2abc", "Authorization: Bearer Zx81mQ0pL2", "https://u:p@h/x",
		"Server=db;Password=x1;Encrypt=True", "cust-1", "cust-2 x",
		"-----BEGIN PRIVATE KEY-----\n" + keyBody + "\n-----END PRIVATE KEY-----\n",
		"<Data Name='Password'>hunter 2</Data>", "<password>x</password>",
		`{"password":"x y","n":1}`, `{"token":5,"a":[1]}`, "password: hunter2", "token: |", "Cookie: a=b; c",
		"DB_PASSWORD", "curl -u a:bcd",
		"pwd='abc'", "-p", "k=v,", "--api-key", "REG_SZ", "sig=abc%2B&x", "key: 'password'",
	}
}

func document(t *rapid.T, depth int) any {
	names := []string{"password", "token", "name", "value", "key", "args", "x", "auth", "authorization", "cookie",
		"clientSecret", "pwd", "Name", "Value"}
	size := rapid.IntRange(0, 4)
	switch kind := rapid.IntRange(0, 9).Draw(t, "kind"); {
	case kind == 0 && depth > 0:
		all := []any{}
		for range size.Draw(t, "length") {
			all = append(all, document(t, depth-1))
		}
		return all
	case kind <= 2 && depth > 0:
		all := map[string]any{}
		for range size.Draw(t, "length") {
			all[rapid.SampledFrom(names).Draw(t, "name")] = document(t, depth-1)
		}
		return all
	case kind == 3:
		return rapid.Bool().Draw(t, "bool")
	case kind == 4:
		return nil
	case kind == 5:
		return rapid.IntRange(-9, 99999).Draw(t, "number")
	}
	return rapid.SampledFrom(texts()).Draw(t, "text") + rapid.SampledFrom([]string{"", "\n", ","}).Draw(t, "between") +
		rapid.SampledFrom(texts()).Draw(t, "text")
}

// A redacted document stays a document, since the tables of a bundle are parsed
// again.
func TestADocumentStaysOne(t *testing.T) {
	r := tested(t)
	rapid.Check(t, func(t *rapid.T) {
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		if rapid.Bool().Draw(t, "lines") {
			encoder.SetIndent("", "  ")
		}
		if err := encoder.Encode(document(t, 3)); err != nil {
			t.Fatal(err)
		}
		if clean := r.Bytes(text.Bytes()); !json.Valid(clean) {
			t.Fatalf("%s\nbecame\n%s", text.Bytes(), clean)
		}
	})
}
