// Package archive writes archives whose bytes depend on the names, modes and contents of the files and
// on one time alone: not on the machine, the user, the clock or the order of the files.
package archive

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/tools/release/payload"
)

// TarGz writes a compressed tar archive.
func TarGz(w io.Writer, files []payload.File, modified time.Time) error {
	// The header of gzip gets no name and no time.
	packed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := Tar(packed, files, modified); err != nil {
		return err
	}
	return packed.Close()
}

// Tar writes a tar archive, which may have folders.
func Tar(w io.Writer, files []payload.File, modified time.Time) error {
	out := tar.NewWriter(w)
	for _, file := range sorted(files) {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: file.Name, Mode: int64(file.Mode.Perm()), Size: int64(len(file.Content)),
			ModTime: modified.UTC().Truncate(time.Second), Format: tar.FormatUSTAR,
		}
		if file.Mode.IsDir() {
			header.Typeflag, header.Name = tar.TypeDir, file.Name+"/"
		}
		if file.Mode&fs.ModeSticky != 0 {
			header.Mode |= 0o1000
		}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := out.Write(file.Content); err != nil {
			return err
		}
	}
	return out.Close()
}

// Zip writes a zip archive.
func Zip(w io.Writer, files []payload.File, modified time.Time) error {
	out := zip.NewWriter(w)
	for _, file := range sorted(files) {
		header := &zip.FileHeader{Name: file.Name, Method: zip.Deflate, Modified: modified.UTC().Truncate(time.Second)}
		header.SetMode(file.Mode)
		entry, err := out.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := entry.Write(file.Content); err != nil {
			return err
		}
	}
	return out.Close()
}

// Gzip returns the content compressed, without a name and a time.
func Gzip(content []byte) ([]byte, error) {
	var b bytes.Buffer
	packed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := packed.Write(content); err != nil {
		return nil, err
	}
	err = packed.Close()
	return b.Bytes(), err
}

func sorted(files []payload.File) []payload.File {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b payload.File) int { return strings.Compare(a.Name, b.Name) })
	return files
}
