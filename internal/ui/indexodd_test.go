package ui

import (
	"bytes"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestIndexOddLooksAtEveryByte(t *testing.T) {
	odd := func(c byte) bool { return c < ' ' && c != '\n' && c != '\t' || c >= 0x7f }
	// Every byte at every position of a word, and in texts shorter than a word.
	for c := range 256 {
		for length := range 20 {
			for at := range length {
				text := bytes.Repeat([]byte{'a'}, length)
				text[at] = byte(c)
				want := length
				if odd(byte(c)) {
					want = at
				}
				if got := indexOdd(text); got != want {
					t.Fatalf("%q: %d, want %d", text, got, want)
				}
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOf(rapid.Byte()).Draw(t, "text")
		want := slices.IndexFunc(text, odd)
		if want < 0 {
			want = len(text)
		}
		if got := indexOdd(text); got != want {
			t.Fatalf("%q: %d, want %d", text, got, want)
		}
	})
}

// BenchmarkIndexOdd measures the cost of checking a log before it is written.
func BenchmarkIndexOdd(b *testing.B) {
	line := "I1120 14:29:59.123456    4711 kubelet.go:2345] \"SyncLoop ADD\" source=\"api\" " +
		"pods=[\"default/web-6d4cf56db6-abcde\"]\n"
	text := bytes.Repeat([]byte(line), 256<<10/len(line))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if indexOdd(text) != len(text) {
			b.Fatal("it is plain")
		}
	}
}
