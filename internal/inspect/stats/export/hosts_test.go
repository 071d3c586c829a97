package export_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/swdt-dev/swdt/internal/inspect/stats/export"
)

func TestOnlyHosts(t *testing.T) {
	handler := export.OnlyHosts([]string{"box.example"}, export.New().Handler())
	for host, want := range map[string]int{
		"127.0.0.1:9750": 200, "localhost:9750": 200, "LOCALHOST": 200, "localhost.:9750": 200, "[::1]:9750": 200,
		"[fe80::1]": 200, "192.0.2.7": 200,
		"box.example:9750": 200, "Box.Example.": 200,
		"rebound.example:9750": 421, "rebound.example": 421, "127.0.0.1.rebound.example": 421,
		"localhost.rebound.example": 421, "": 421,
		"box.example.rebound.example": 421, "[rebound]:1": 421, "2130706433:9750": 421,
	} {
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		request.Host = host
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if answer.Code != want {
			t.Errorf("Host %q: %d, want %d", host, answer.Code, want)
		}
		if answer.Code != 200 && strings.Contains(answer.Body.String(), "swdt_") {
			t.Errorf("Host %q got metrics", host)
		}
	}
}
