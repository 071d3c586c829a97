// Package reply checks every message of a node before any other code sees it.
//
// A node is a machine that others run programs on: its answers may be made by an
// attacker. A gRPC codec bounds the elements of a message before it is decoded and
// refuses fields that the contract does not have; then each field is held against
// its rule, and the reply against the request. All calls of package node go through
// Options, and a test demands a rule for every field of every reply, so that a new
// field cannot be forgotten.
//
// What only the sum of many messages shows, such as more bytes of a file than were
// announced, is for the code that reads them.
package reply
