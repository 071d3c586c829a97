package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/swdt-dev/swdt/internal/localfile"
	"github.com/swdt-dev/swdt/internal/ui"
)

// newClient returns a client for large downloads. It has no overall timeout, since the
// duration of a download is unknown. It bounds everything before the first byte.
func newClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 20 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:   20 * time.Second,
			ResponseHeaderTimeout: time.Minute,
			ForceAttemptHTTP2:     true,
			DisableCompression:    true, // a compressed response would have other lengths and ranges than the file
		},
		CheckRedirect: checkRedirect,
	}
}

// checkRedirect follows redirects as browsers do, but never from https to http: the file
// will run as SYSTEM.
func checkRedirect(next *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return errors.New("more than 10 redirects")
	}
	// The previous address may contain a token, which the next server must not see.
	next.Header.Del("Referer")
	if via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme != "https" {
		return fmt.Errorf("the server redirects from https to %s://%s, which every host on the way can change",
			next.URL.Scheme, next.URL.Host)
	}
	return nil
}

// download gets a URL into the cache and returns the file's path in the cache. If the cache has a
// file with the wanted hash, download makes no request. If the cache has the file of the URL and
// the server reports that this file has not changed, nothing is transferred.
func (s *Set) download(ctx context.Context, u *url.URL, wanted string, most int64, r ui.Reporter) (string, error) {
	limits, err := s.options.Limits.complete(os.LookupEnv)
	if err != nil {
		return "", err
	}
	if most > 0 {
		limits.Size = most
	}
	c, err := openCache(s.options.Cache)
	if err != nil {
		return "", err
	}
	if blob, ok := c.verifiedBlob(ctx, wanted); ok {
		return blob, nil
	}
	place, err := c.slot(ctx, u.String(), func() { r.Step("waiting for another swdt that downloads %s", shown(u)) })
	if err != nil {
		return "", err
	}
	defer place.release()
	d := &download{
		url: u, wanted: wanted, client: s.options.HTTP, limits: limits,
		place: place, known: place.load(), reporter: r,
	}
	return d.run(ctx)
}

// download is the download of one URL into the cache. It holds the lock of the URL.
type download struct {
	url      *url.URL
	wanted   string
	client   *http.Client
	limits   Limits
	place    *slot
	known    record
	reporter ui.Reporter
}

func (d *download) run(ctx context.Context) (string, error) {
	d.reporter.Step("asking for %s", shown(d.url))
	if d.known.SHA256 != "" {
		blob, ok := d.place.cache.verifiedBlob(ctx, d.known.SHA256)
		if ok && (d.wanted == "" || d.wanted == d.known.SHA256) {
			return d.request(ctx, conditional(d.known), blob)
		}
		d.known = record{}
	}
	if err := ctx.Err(); err != nil {
		return "", context.Cause(ctx)
	}
	path, err := d.request(ctx, d.resuming(), "")
	if errors.Is(err, errPartUseless) {
		d.known = record{}
		if err := d.place.dropPart(); err != nil {
			return "", err
		}
		path, err = d.request(ctx, http.Header{}, "")
	}
	return path, err
}

// errPartUseless means that the server cannot continue where the part ends.
var errPartUseless = errors.New("the server cannot continue the download")

// conditional returns the headers of a conditional request: the server sends the file only
// if it has changed.
func conditional(known record) http.Header {
	header := http.Header{}
	if known.ETag != "" {
		header.Set("If-None-Match", known.ETag)
	} else if known.LastModified != "" {
		header.Set("If-Modified-Since", known.LastModified)
	}
	return header
}

// resuming returns the headers of a request for the bytes that the part lacks. If the record has
// no suitable validator, it returns no headers: nothing would guarantee that the part and the rest
// belong to the same file.
func (d *download) resuming() http.Header {
	header := http.Header{}
	size := d.place.partSize()
	validator := d.known.strong()
	if size == 0 || validator == "" {
		return header
	}
	header.Set("Range", fmt.Sprintf("bytes=%d-", size))
	header.Set("If-Range", validator)
	return header
}

// strong returns the validator with which a download can be continued: a strong ETag, which
// changes whenever a byte of the file changes, else Last-Modified. If the record has neither,
// it returns "".
func (r record) strong() string {
	if r.ETag != "" && !strings.HasPrefix(r.ETag, "W/") {
		return r.ETag
	}
	return r.LastModified
}

// request makes one GET request and stores the body in the cache. If the server answers 304 (not
// modified), request returns the given path, at which the cache already has the file. The given
// path is "" if the cache does not have the file.
func (d *download) request(ctx context.Context, header http.Header, unchanged string) (string, error) {
	ctx, watch := newWatchdog(ctx, d.limits)
	defer watch.stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url.String(), nil)
	if err != nil {
		return "", fmt.Errorf("download %s: the URL is not valid", shown(d.url))
	}
	request.Header = header
	response, err := d.client.Do(request)
	if err != nil {
		return "", d.failed(ctx, err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusNotModified:
		if unchanged == "" {
			return "", d.status(response)
		}
		return unchanged, nil
	case http.StatusOK:
		return d.receive(ctx, response, 0, watch)
	case http.StatusPartialContent:
		size := d.place.partSize()
		if start, ok := contentRangeStart(response.Header.Get("Content-Range")); !ok || start != size {
			return "", errPartUseless
		}
		return d.receive(ctx, response, size, watch)
	case http.StatusRequestedRangeNotSatisfiable:
		if header.Get("Range") != "" {
			return "", errPartUseless
		}
	}
	return "", d.status(response)
}

func (d *download) status(response *http.Response) error {
	return &StatusError{URL: shown(d.url), Status: response.StatusCode, Text: http.StatusText(response.StatusCode)}
}

// failed returns the error for a request that got no answer.
func (d *download) failed(ctx context.Context, err error) error {
	if limit := limitError(ctx); limit != nil {
		err = limit
	} else if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // the outer error would repeat the URL with its query
	}
	return fmt.Errorf("download %s: %w: check the URL, the network and the proxy settings", shown(d.url), err)
}

// receive appends the body to the part, which already has the given number of bytes, and moves the
// complete part into the blobs.
func (d *download) receive(ctx context.Context, response *http.Response, have int64, watch *watchdog) (string, error) {
	now := record{ETag: response.Header.Get("ETag"), LastModified: response.Header.Get("Last-Modified")}
	if response.ContentLength >= 0 {
		now.Total = have + response.ContentLength
	}
	if d.limits.Size > 0 && now.Total > d.limits.Size {
		return "", d.tooLarge(now.Total)
	}
	// The part and its record must match at every moment: the part of another file is
	// removed before the new record is written.
	if have == 0 {
		if err := d.place.dropPart(); err != nil {
			return "", err
		}
	}
	if err := d.place.save(now); err != nil {
		return "", err
	}
	if err := d.append(ctx, response.Body, have, now.Total, watch); err != nil {
		return "", err
	}
	return d.finish(ctx, now)
}

func (d *download) append(ctx context.Context, body io.Reader, have, total int64, watch *watchdog) error {
	part, err := os.OpenFile(d.place.part(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("write the download: %w", err)
	}
	defer part.Close()
	ui.Downloading(d.reporter)
	progress := d.reporter.Transfer(path.Base(d.url.Path), total)
	defer progress.End()
	progress.Add(have)
	if d.limits.Size > 0 {
		body = io.LimitReader(body, max(0, d.limits.Size-have)+1)
	}
	watch.begin()
	n, err := copyBody(part, body, func(n int64) {
		watch.alive(n)
		progress.Add(n)
	})
	var local *writeError
	switch {
	case errors.As(err, &local):
		return fmt.Errorf("write the download to the cache: %w", local.err)
	case d.limits.Size > 0 && have+n > d.limits.Size:
		return d.tooLarge(0)
	case err != nil && limitError(ctx) != nil:
		return &TruncatedError{URL: shown(d.url), Got: have + n, Want: total, Err: limitError(ctx)}
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return &TruncatedError{URL: shown(d.url), Got: have + n, Want: total, Err: err}
	case total > 0 && have+n != total:
		return &TruncatedError{URL: shown(d.url), Got: have + n, Want: total, Err: io.ErrUnexpectedEOF}
	}
	if err := part.Close(); err != nil {
		return fmt.Errorf("write the download to the cache: %w", err)
	}
	return nil
}

// tooLarge removes the part and returns the error for a file beyond the limit. size is in
// bytes; 0 means unknown.
func (d *download) tooLarge(size int64) error {
	return errors.Join(&TooLargeError{URL: shown(d.url), Size: size, Limit: d.limits.Size}, d.place.dropPart())
}

// finish verifies the download and moves it into the blobs.
func (d *download) finish(ctx context.Context, now record) (string, error) {
	hash, err := localfile.Hash(ctx, d.place.part())
	if err != nil {
		return "", fmt.Errorf("verify the download: %w", err)
	}
	if d.wanted != "" && hash != d.wanted {
		// The part must not be continued, since it is not the wanted file.
		if err := d.place.dropPart(); err != nil {
			return "", err
		}
		return "", &HashMismatchError{Name: shown(d.url), Want: d.wanted, Got: hash}
	}
	blob, err := d.place.cache.blobs.Adopt(ctx, d.place.part(), hash)
	if err != nil {
		return "", err
	}
	now.SHA256 = hash
	return blob, d.place.save(now)
}

type writeError struct{ err error }

func (e *writeError) Error() string { return e.err.Error() }

// copyBody copies like io.Copy, but distinguishes a failed read from a failed write. It calls the
// given function after each successful write, with the number of bytes.
func copyBody(w io.Writer, r io.Reader, each func(n int64)) (int64, error) {
	buffer := make([]byte, 256<<10)
	var total int64
	for {
		n, readErr := r.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return total, &writeError{err}
			}
			total += int64(n)
			each(int64(n))
		}
		if readErr == io.EOF {
			return total, nil
		}
		if readErr != nil {
			return total, readErr
		}
	}
}

// contentRangeStart returns the first position of a Content-Range header: 10 for "bytes
// 10-99/100".
func contentRangeStart(header string) (int64, bool) {
	rest, ok := strings.CutPrefix(header, "bytes ")
	first, _, dash := strings.Cut(rest, "-")
	if !ok || !dash {
		return 0, false
	}
	start, err := strconv.ParseInt(first, 10, 64)
	return start, err == nil
}
