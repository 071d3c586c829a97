// Package ssh connects your machine to a Windows node: it finds the route, checks the
// host keys, logs in and keeps the connection alive. Commands and SFTP then use that
// one connection.
//
//   - route.go: the hops that the node file and ~/.ssh/config describe
//   - dial.go: connecting hop after hop, each bounded in time
//   - hostkey.go: whether the machine that answered is the intended one
//   - auth.go, keys.go, keyring.go: logging in
//   - client.go, process.go: sessions on the connection
//   - errors.go: one type for each cause, each with its remedy
//
// Nothing is sent to a machine before its host key is trusted. Package node handles
// what is specific to Windows.
package ssh
