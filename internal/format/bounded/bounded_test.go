package bounded

import (
	"errors"
	"strings"
	"testing"
)

func TestHeadAndTail(t *testing.T) {
	text := strings.Repeat("0123456789", 50)
	for _, most := range []int{1, 7, 10, 499, 500, 501} {
		for _, step := range []int{1, 3, 100, 500} {
			head, tail := &Head{Most: most}, &Tail{Most: most}
			for at := 0; at < len(text); at += step {
				part := []byte(text[at:min(at+step, len(text))])
				for name, w := range map[string]interface{ Write([]byte) (int, error) }{"head": head, "tail": tail} {
					if n, err := w.Write(part); n != len(part) || err != nil {
						t.Fatalf("%s: %d, %v", name, n, err)
					}
				}
				if got := cap(tail.kept); got > 8*most+8 {
					t.Fatalf("the tail of %d bytes has room for %d", most, got)
				}
			}
			if want := text[:min(most, len(text))]; head.String() != want {
				t.Errorf("head of %d in steps of %d: %q, want %q", most, step, head, want)
			}
			if want := text[max(0, len(text)-most):]; tail.String() != want {
				t.Errorf("tail of %d in steps of %d: %q, want %q", most, step, tail, want)
			}
		}
	}
}

func TestHeadRefuses(t *testing.T) {
	refuse := errors.New("too much")
	h := &Head{Most: 4, Refuse: refuse}
	if _, err := h.Write([]byte("1234")); err != nil {
		t.Error(err)
	}
	if _, err := h.Write([]byte("5")); !errors.Is(err, refuse) || h.String() != "1234" {
		t.Errorf("%q, %v", h, err)
	}
}
