module hosts/cgo
go 1.19
