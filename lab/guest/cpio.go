package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// writeInitramfs writes the guest's only file system: init, and the kernel modules in /modules. The name of
// each module begins with a number, and init loads the modules in this order. The file system is not
// compressed, since an emulated processor would need seconds to decompress it.
func writeInitramfs(file string, k kernel, program string) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("write the initramfs: %w", err)
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	out := bufio.NewWriter(f)
	a := archive{out: out}
	for _, folder := range []string{"dev", "proc", "sys", "run", "tmp", "cd", "cds", "modules"} {
		a.folder(folder)
	}
	// The kernel opens the console for init before anything is mounted.
	a.entry("dev/console", 0o020600, 5, 1, nil)
	a.file("init", program, 0o755)
	for i, module := range k.modules {
		a.file(fmt.Sprintf("modules/%03d-%s", i, filepath.Base(module)), module, 0o644)
	}
	a.entry("TRAILER!!!", 0, 0, 0, nil)
	if a.err != nil {
		return fmt.Errorf("write the initramfs: %w", a.err)
	}
	return out.Flush()
}

// archive writes cpio's format "newc". After the first error, which it keeps in err, it writes nothing.
type archive struct {
	out     io.Writer
	written int
	inode   int
	err     error
}

func (a *archive) folder(name string) { a.entry(name, 0o040755, 0, 0, nil) }

func (a *archive) file(name, source string, mode int) {
	data, err := os.ReadFile(source)
	if err != nil && a.err == nil {
		a.err = err
	}
	a.entry(name, 0o100000|mode, 0, 0, data)
}

func (a *archive) entry(name string, mode, major, minor int, data []byte) {
	a.inode++
	a.print(fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		a.inode, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(name)+1, 0))
	a.print(name + "\x00")
	a.pad()
	a.write(data)
	a.pad()
}

func (a *archive) print(text string) { a.write([]byte(text)) }

func (a *archive) write(data []byte) {
	if a.err != nil {
		return
	}
	n, err := a.out.Write(data)
	a.written += n
	a.err = err
}

func (a *archive) pad() { a.write(make([]byte, -a.written&3)) }
