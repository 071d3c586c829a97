package streaming

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// longestHead is the longest head of a request, in bytes.
const longestHead = 64 << 10

// request is the beginning of a client's connection.
type request struct {
	method, secret, path, version string
	fields                        []string // header lines without Host and without the ends of lines
	rest                          io.Reader
}

// errHead reports that a client does not speak HTTP, or sends too much of it.
var errHead = errors.New("this port expects an HTTP/1.1 request for a URL of `swdt cri proxy`")

// readRequest reads the head of the request. Its bytes after the request line are kept as they are,
// except for Host.
func readRequest(from io.Reader) (request, error) {
	reader := bufio.NewReader(io.LimitReader(from, longestHead))
	first, err := line(reader)
	if err != nil {
		return request{}, err
	}
	parts := strings.Split(first, " ")
	if len(parts) != 3 || !strings.HasPrefix(parts[2], "HTTP/1.") {
		return request{}, errHead
	}
	secret, path, found := strings.Cut(strings.TrimPrefix(parts[1], "/"), "/")
	if !found || !strings.HasPrefix(parts[1], "/") {
		return request{}, errHead
	}
	r := request{method: parts[0], secret: secret, path: "/" + path, version: parts[2]}
	for {
		field, err := line(reader)
		if err != nil {
			return request{}, err
		}
		if field == "" {
			break
		}
		if name, _, _ := strings.Cut(field, ":"); !strings.EqualFold(strings.TrimSpace(name), "Host") {
			r.fields = append(r.fields, field)
		}
	}
	// The reader may have read further. All other bytes come from the connection.
	r.rest = io.MultiReader(io.LimitReader(reader, int64(reader.Buffered())), from)
	return r, nil
}

// line reads one line and removes its end.
func line(reader *bufio.Reader) (string, error) {
	text, err := reader.ReadString('\n')
	if err != nil {
		return "", errHead
	}
	text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	if strings.ContainsAny(text, "\r\x00") {
		return "", errHead
	}
	return text, nil
}

// bytesTo returns the bytes of the connection as the runtime's streaming server expects them: for its
// own address, with the path that it named, and without the secret.
func (r request) bytesTo(t target) io.Reader {
	var head bytes.Buffer
	fmt.Fprintf(&head, "%s %s %s\r\nHost: %s\r\n", r.method, t.path, r.version, t.address)
	for _, field := range r.fields {
		head.WriteString(field + "\r\n")
	}
	head.WriteString("\r\n")
	return io.MultiReader(&head, r.rest)
}
