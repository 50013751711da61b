"""The data source as Spark sees it."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from penstock.client.spark.options import TABLES, read, readable, streamable, writable
from penstock.client.spark.reading import Reader
from penstock.client.spark.streaming import StreamReader
from penstock.client.spark.writing import Writer
from penstock.domain.errors import InvalidRequest
from penstock.pipeline.schemas import schema_of


class PenstockSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> StructType:
        """The schema of the lake's table of the same name, so that transforms accept both."""
        return schema_of(TABLES[readable(read(self.options)).table])

    def reader(self, schema: StructType) -> DataSourceReader:
        return Reader(readable(read(self.options)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return StreamReader(streamable(read(self.options)))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise InvalidRequest("rows can only be appended: use .mode('append')")
        return Writer(writable(read(self.options)), schema)
