module example.com/good

go 1.26

require (
	github.com/oklog/ulid/v2 v2.0.0
	github.com/quic-go/quic-go v0.0.0
	modernc.org/sqlite v0.0.0
)

replace (
	github.com/oklog/ulid/v2 => ../stubs/ulid
	github.com/quic-go/quic-go => ../stubs/quic
	modernc.org/sqlite => ../stubs/sqlite
)
