// Command curl stands for the curl.exe of Windows, which images for Windows contain and Wine lacks. It
// has the options that swdt uses, and the exit codes that curl documents.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The exit codes of curl.
const (
	usage      = 2
	unreadable = 37 // a file cannot be read
	unwritable = 23
	unresolved = 6
	refused    = 7
	timedOut   = 28
	received   = 56 // the connection failed later
)

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// request is one request.
type request struct {
	url, data      string
	connect, limit time.Duration
	insecure       bool
}

// answer is the result of a request.
type answer struct {
	body   []byte
	status int
	lookup time.Duration // from the begin until the name was resolved; 0: it was not
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("curl", flag.ContinueOnError)
	flags.SetOutput(stderr)
	version := flags.Bool("version", false, "print the version")
	flags.Bool("silent", false, "print no progress, as always")
	show := flags.Bool("show-error", false, "print errors")
	insecure := flags.Bool("insecure", false, "accept all certificates")
	connect := flags.Float64("connect-timeout", 60, "`seconds` until there is a connection")
	limit := flags.Float64("max-time", 60, "`seconds` for the request")
	upload := flags.String("upload-file", "", "- for stdin, to write it to the URL of a file")
	data := flags.String("data", "", "the `form` to send")
	format := flags.String("write-out", "", "the `format` of the last line")
	if err := flags.Parse(args); err != nil {
		return usage
	}
	if *version {
		fmt.Fprintln(stdout, "curl of swdt's lab")
		return 0
	}
	if flags.NArg() != 1 {
		fmt.Fprintln(stderr, "curl: want one URL")
		return usage
	}
	if path, ok := strings.CutPrefix(flags.Arg(0), "file://"); ok {
		return copyFile(path, *upload, stdin, stdout, stderr)
	}
	q := request{flags.Arg(0), *data, seconds(*connect), seconds(*limit), *insecure}
	a, err := q.send(context.Background())
	_, _ = stdout.Write(a.body)
	fmt.Fprint(stdout, strings.NewReplacer(`\n`, "\n", "%{http_code}", fmt.Sprintf("%03d", a.status),
		"%{time_namelookup}", fmt.Sprintf("%.6f", a.lookup.Seconds())).Replace(*format))
	if err == nil {
		return 0
	}
	code := exitCode(err, a)
	if *show {
		fmt.Fprintf(stderr, "curl: (%d) %v\n", code, err)
	}
	return code
}

// copyFile writes the input into the file of a URL, if upload is -, and otherwise the file to stdout.
func copyFile(path, upload string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(path) > 2 && path[2] == ':' { // /C:/folder/file
		path = path[1:]
	}
	path = filepath.FromSlash(path)
	failed := func(code int, err error) int {
		if err == nil {
			return 0
		}
		fmt.Fprintf(stderr, "curl: (%d) %v\n", code, err)
		return code
	}
	if upload == "-" {
		file, err := os.Create(path)
		if err != nil {
			return failed(unwritable, err)
		}
		_, err = io.Copy(file, stdin)
		return failed(unwritable, errors.Join(err, file.Close()))
	}
	file, err := os.Open(path)
	if err != nil {
		return failed(unreadable, err)
	}
	defer file.Close()
	_, err = io.Copy(stdout, file)
	return failed(unreadable, err)
}

func seconds(count float64) time.Duration { return time.Duration(count * float64(time.Second)) }

// send sends the request. The answer has a lookup and a status even if send fails later.
func (q request) send(ctx context.Context) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, q.limit)
	defer cancel()
	begin := time.Now()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		ConnectStart: func(_, _ string) {
			if a.lookup == 0 {
				a.lookup = time.Since(begin)
			}
		},
	})
	method, body := http.MethodGet, io.Reader(nil)
	if q.data != "" {
		method, body = http.MethodPost, strings.NewReader(q.data)
	}
	sent, err := http.NewRequestWithContext(ctx, method, q.url, body)
	if err != nil {
		return a, err
	}
	if q.data != "" {
		sent.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := http.Client{Transport: &http.Transport{
		DialContext:     (&net.Dialer{Timeout: q.connect}).DialContext,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: q.insecure},
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := client.Do(sent)
	if err != nil {
		return a, err
	}
	defer got.Body.Close()
	a.status = got.StatusCode
	a.body, err = io.ReadAll(got.Body)
	return a, err
}

// exitCode returns curl's exit code for an error.
func exitCode(err error, a answer) int {
	var (
		name    *net.DNSError
		network net.Error
	)
	switch {
	case errors.As(err, &name):
		return unresolved
	case errors.As(err, &network) && network.Timeout():
		return timedOut
	case a.status == 0:
		return refused
	}
	return received
}
