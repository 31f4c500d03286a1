INSERT INTO users (id, display_name)
SELECT n, 'Person number ' || n
FROM generate_series(1, @all_reader::bigint) AS n;
