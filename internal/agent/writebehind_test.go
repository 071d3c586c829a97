package agent

import (
	"bytes"
	"errors"
	"io"
	"testing"
)

// limitedFile takes a number of bytes and then fails, as a full disk does.
type limitedFile struct {
	bytes.Buffer
	room int
}

var errNoRoom = errors.New("no room")

func (f *limitedFile) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return 0, errNoRoom
	}
	f.room -= len(p)
	return f.Buffer.Write(p)
}

// The bytes are those that were written, in their order, for sizes around that of a part.
func TestWriteBehindKeepsTheOrder(t *testing.T) {
	for _, size := range []int{0, 1, readChunk - 1, readChunk, readChunk + 1, 5*readChunk + 7} {
		content := make([]byte, size)
		for i := range content {
			content[i] = byte(i * 31 >> 3)
		}
		to := &limitedFile{room: size}
		w := newWriteBehind(to)
		_, err := io.CopyBuffer(onlyWriter{w}, onlyReader{bytes.NewReader(content)}, make([]byte, 70_001))
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		if !bytes.Equal(to.Bytes(), content) {
			t.Errorf("%d bytes: the file has others", size)
		}
	}
}

// A failed write is returned by a later Write or by Close, and neither waits for the goroutine, which has ended.
func TestWriteBehindReturnsTheError(t *testing.T) {
	for _, room := range []int{0, readChunk, 3 * readChunk} {
		w := newWriteBehind(&limitedFile{room: room})
		for range 10 {
			if _, err := w.Write(make([]byte, readChunk)); err != nil {
				break
			}
		}
		if err := w.Close(); !errors.Is(err, errNoRoom) {
			t.Errorf("with room for %d bytes: %v", room, err)
		}
	}
}
