package simulated

import (
	"bytes"
	"io"
	"testing"

	"pgregory.net/rapid"
)

// Writes at any place have the same result as in a slice of bytes, and an earlier
// reader continues to read the old content.
func TestContentIsABytesSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c content
		var model []byte
		size := func(name string) int { return rapid.IntRange(0, 3*chunkSize).Draw(t, name) }
		for step := range rapid.IntRange(1, 6).Draw(t, "steps") {
			before, reader := bytes.Clone(model), c.reader()
			data := bytes.Repeat([]byte{byte(step + 1)}, size("length"))
			switch offset := size("offset"); rapid.SampledFrom([]string{"append", "write", "truncate"}).Draw(t,
				"what") {
			case "append":
				c.append(data)
				model = append(model, data...)
			case "write":
				c.writeAt(data, int64(offset))
				if missing := offset + len(data) - len(model); missing > 0 {
					model = append(model, make([]byte, missing)...)
				}
				copy(model[offset:], data)
			case "truncate":
				c.truncate(int64(offset))
				model = model[:min(offset, len(model))]
			}
			got, err := io.ReadAll(c.reader().stream())
			if err != nil || !bytes.Equal(got, model) {
				t.Fatalf("step %d: %d bytes differ from %d, %v", step, len(got), len(model), err)
			}
			if old, _ := io.ReadAll(reader.stream()); !bytes.Equal(old, before) {
				t.Fatalf("step %d changed the content of an open reader", step)
			}
		}
	})
}
