// Command pad appends bytes to an executable until the file has a given size. Windows
// ignores bytes after the last section. The appended bytes are as compressible as
// machine code (about 3:1), and the same in every run.
//
//	go run ./pad kubelet.exe kubelet-100M.exe 100M
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: pad IN OUT SIZE   (bytes, or with K, M)")
		os.Exit(2)
	}
	if err := pad(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintf(os.Stderr, "pad: %v\n", err)
		os.Exit(1)
	}
}

func pad(from, to, size string) error {
	want, err := parseSize(size)
	if err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer out.Close()
	w := bufio.NewWriterSize(out, 1<<20)
	have, err := io.Copy(w, in)
	if err != nil {
		return err
	}
	if have > want {
		return fmt.Errorf("%s has %d bytes already, more than %d", from, have, want)
	}
	if err := fill(w, want-have); err != nil {
		return err
	}
	return errors.Join(w.Flush(), out.Close())
}

// fill writes n bytes: runs of random bytes between runs of zeros.
func fill(w *bufio.Writer, n int64) error {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		b := byte(0)
		if i%12 < 4 {
			b = byte(random.Uint32())
		}
		if err := w.WriteByte(b); err != nil {
			return err
		}
	}
	return nil
}

func parseSize(text string) (int64, error) {
	unit := int64(1)
	switch {
	case strings.HasSuffix(text, "K"):
		unit = 1 << 10
	case strings.HasSuffix(text, "M"):
		unit = 1 << 20
	}
	n, err := strconv.ParseInt(strings.TrimRight(text, "KM"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("size %q: %w", text, err)
	}
	return n * unit, nil
}
