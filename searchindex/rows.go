package searchindex

import (
	"context"
	"database/sql"
)

// eachRow runs f on every row of a query.
func eachRow(
	ctx context.Context, db *sql.DB, f func(scan func(...any) error) error, query string, args ...any,
) (err error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = cerr
		}
	}()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}
