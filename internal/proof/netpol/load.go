package netpol

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/swdt-dev/swdt/internal/proof/policy"
)

const (
	// maxFile bounds the size of a file with policies, in bytes, and maxPolicies bounds their number.
	maxFile, maxPolicies = 1 << 20, 200
	// stdin is the path that stands for standard input.
	stdin = "-"
)

// Load reads the policies of files, and checks them. The path - stands for in. Policies of other kinds are listed in
// the case's LeftOut, and other objects are skipped. The case has the name of the only file, or "policies".
func Load(paths []string, in io.Reader) (Case, error) {
	c := Case{Name: "policies"}
	if len(paths) == 1 && paths[0] != stdin {
		c.Name = filepath.Base(paths[0])
	}
	for _, path := range paths {
		found, err := loadFile(path, in)
		if err != nil {
			return c, err
		}
		if len(found.policies) == 0 {
			return c, found.noneError(path)
		}
		c.Policies = append(c.Policies, found.policies...)
		c.LeftOut = append(c.LeftOut, found.others...)
	}
	if len(c.Policies) > maxPolicies {
		return c, fmt.Errorf("%d policies are more than %d; try them in parts", len(c.Policies), maxPolicies)
	}
	names := c.policyNames()
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return c, fmt.Errorf("there are two policies %s; the second would replace the first", name)
		}
	}
	_, err := policy.New(c.Policies)
	return c, err
}

func loadFile(path string, in io.Reader) (*found, error) {
	if path != stdin {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read the policies: %w", err)
		}
		defer file.Close()
		in = file
	}
	text, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", path, err)
	case len(text) > maxFile:
		return nil, fmt.Errorf("%s has more than %d bytes; is it a file with policies?", path, maxFile)
	}
	all := &found{}
	end := 0 // of the document in the text
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		begin := end + max(0, bytes.Index(text[end:], document))
		end = begin + len(document)
		if err == nil {
			err = all.add(document, metav1.TypeMeta{})
		}
		var unknown *unknownField
		if errors.As(err, &unknown) {
			return nil, fmt.Errorf("%s:%d: %w", path, bytes.Count(text[:begin], []byte("\n"))+unknown.line(document), unknown)
		}
		if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w", path, number, err)
		}
	}
}
