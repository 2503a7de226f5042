// Package images has the images of a node: which there are, what can be pulled,
// what is in them, and what is known of those that are widely used.
//
// A Source is an image as a registry has it: an entry of the catalogue that a
// scenario states (Image), or what is made up for a name outside it. A Present is
// an image on the node, with the names that it was pulled by. Ids and digests are
// made of names, so that the same image has the same ones on every node.
//
// # Known images
//
// The files of the folder catalogue, one an image, say what is known of widely used
// images: their configuration, the tree of files that they have, the server they
// run, the tools that probes run. To know another image is to add its file, and
// nothing else. An entry of a scenario's catalogue wins over it, field by field.
// known.go reads the files, server.go is what their servers do, source.go where they
// are told their ports, tool.go what their tools ask, agnhost.go the one image whose
// behaviour takes a program to say. testimages.go are the images of the conformance
// checks, which package actor lists.
//
// # What is shared
//
// Thousands of nodes have the same images. Trees holds what they share: the files of
// images, applets, the known images, and what listings show of those that are
// present from the start. It is written to by New only, while no node runs; later
// each node makes what it needs for itself.
//
// # Files
//
// image.go has the store and the names, pulls.go admits and counts, disk.go
// takes and gives back space, imageshare.go is the table that is shared. trees.go
// makes files, files.go says which an image has and what its programs do, users.go
// reads its users.
package images
