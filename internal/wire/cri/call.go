package cri

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	streamID = 1        // the ID of the only call on the connection
	maxReply = 16 << 20 // maximum size of a reply in bytes, the same as the kubelet's
)

// call makes one gRPC call on a new connection. gRPC is HTTP/2. It puts the status into a trailer,
// and a prefix of five bytes before each message.
func call(conn net.Conn, method string, message []byte) ([]byte, error) {
	framer := http2.NewFramer(conn, conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	answered := make(chan outcome, 1)
	// Start to read before writing, since a pipe may transfer no byte until both ends use the pipe.
	go func() {
		var o outcome
		o.err = o.read(framer)
		answered <- o
	}()
	if err := request(conn, method, message); err != nil {
		return nil, err
	}
	o := <-answered
	if o.err != nil {
		return nil, fmt.Errorf("read the runtime's answer: %w", o.err)
	}
	return o.message()
}

// request writes the whole call at once, since no part of the call waits for a reply.
func request(conn net.Conn, method string, message []byte) error {
	var block, frames bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, field := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", method}, {":authority", "localhost"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		if err := encoder.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}); err != nil {
			return err
		}
	}
	frames.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(&frames, nil)
	headers := http2.HeadersFrameParam{StreamID: streamID, BlockFragment: block.Bytes(), EndHeaders: true}
	prefixed := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...) // 0: not compressed
	// With a window of maxReply bytes, the server sends the whole reply without waiting for window
	// updates. The client reads the reply to its end in any case.
	window := http2.Setting{ID: http2.SettingInitialWindowSize, Val: maxReply}
	if err := errors.Join(framer.WriteSettings(window), framer.WriteWindowUpdate(0, maxReply),
		framer.WriteHeaders(headers), framer.WriteData(streamID, true, prefixed)); err != nil {
		return err
	}
	if _, err := conn.Write(frames.Bytes()); err != nil {
		return fmt.Errorf("ask the runtime: %w", err)
	}
	return nil
}

// outcome is the received reply.
type outcome struct {
	status, text string // grpc-status, grpc-message
	body         []byte
	err          error
}

// read reads frames until the call has ended. It does not acknowledge the server's settings: the
// settings do not matter for one small call, and the connection is closed before the server would
// object.
func (o *outcome) read(framer *http2.Framer) error {
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			return err
		}
		switch f := frame.(type) {
		case *http2.MetaHeadersFrame:
			for _, field := range f.Fields {
				switch strings.ToLower(field.Name) {
				case "grpc-status":
					o.status = field.Value
				case "grpc-message":
					o.text = field.Value
				}
			}
			if f.StreamEnded() {
				return nil
			}
		case *http2.DataFrame:
			if o.body = append(o.body, f.Data()...); len(o.body) > maxReply {
				return fmt.Errorf("more than %d bytes", maxReply)
			}
			if f.StreamEnded() {
				return nil
			}
		case *http2.RSTStreamFrame:
			return fmt.Errorf("the call was reset: %s", f.ErrCode)
		case *http2.GoAwayFrame:
			return fmt.Errorf("the connection was refused: %s", f.ErrCode)
		}
	}
}

func (o *outcome) message() ([]byte, error) {
	if o.status != "0" {
		return nil, fmt.Errorf("the runtime answered with gRPC status %q: %s", o.status, o.text)
	}
	if len(o.body) < 5 || o.body[0] != 0 || int(binary.BigEndian.Uint32(o.body[1:])) != len(o.body)-5 {
		return nil, errors.New("the runtime's answer is not one gRPC message")
	}
	return o.body[5:], nil
}
