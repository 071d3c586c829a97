package windows

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/Microsoft/go-winio"
)

// bodyLimit is how much of an answer is kept, bytes.
const bodyLimit = 64 << 10

// network reaches what listens on this machine.
type network struct{}

func (network) HTTPGet(ctx context.Context, url string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("get %s: %w", url, err)
	}
	client := &http.Client{
		// No proxy: what is asked for is on this machine.
		Transport:     &http.Transport{Proxy: nil, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, failed(err, "ask")
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyLimit))
	return response.StatusCode, body, failed(err, "read the answer of %s", url)
}

func (network) DialPipe(ctx context.Context, path string) (net.Conn, error) {
	conn, err := winio.DialPipeContext(ctx, path)
	if err != nil {
		return nil, failed(err, "connect to pipe %s", path)
	}
	return conn, nil
}
